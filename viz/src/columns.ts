// Columns of numbers, back from base64 and zlib.

type Numbers<T> = {new (buffer: ArrayBuffer): T; BYTES_PER_ELEMENT: number};

/** Throws an Error that says which column is broken. */
export async function column<Name extends string, T extends {length: number}>(
  columns: Readonly<Record<Name, string>>, name: Name, count: number, Kind: Numbers<T>
): Promise<T> {
  const numbers = await columnOfAnyLength(columns, name, Kind);
  if (numbers.length !== count) throw new Error(`column ${name} has ${numbers.length} numbers, expected ${count}`);
  return numbers;
}

/** Likewise. */
export async function columnOfAnyLength<Name extends string, T>(
  columns: Readonly<Record<Name, string>>, name: Name, Kind: Numbers<T>
): Promise<T> {
  const bytes = await inflate(fromBase64(columns[name]));
  if (bytes.byteLength % Kind.BYTES_PER_ELEMENT !== 0) {
    throw new Error(`column ${name} ends in a number of ${Kind.BYTES_PER_ELEMENT} bytes that is not whole`);
  }
  return new Kind(bytes);
}

function fromBase64(text: string): Uint8Array<ArrayBuffer> {
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; ++i) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

async function inflate(bytes: Uint8Array<ArrayBuffer>): Promise<ArrayBuffer> {
  if (bytes.length === 0) return new ArrayBuffer(0);
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))).arrayBuffer();
}
