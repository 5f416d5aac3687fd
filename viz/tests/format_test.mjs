// Numbers as a person reads them.
import assert from 'node:assert/strict'
import test from 'node:test'
import { load } from './load.mjs'

const [format] = await load('format.ts')
const plain = text => text.replaceAll('\u00a0', ' ').replaceAll('−', '-')
const says = (name, cases) =>
  test(name, () => {
    for (const [value, expected, ...more] of cases)
      assert.equal(plain(format[name](value, ...more)), expected, `${name}(${value})`)
  })

says('number', [
  [0, '0'],
  [7.2071, '7.207'],
  [0.00012346, '0.0001235'],
  [16384, '16,384'],
  [1234567.8, '1,234,568'],
  [-51.63, '-51.63'],
  [9.9999, '10.00'],
  [99.996, '100.0'],
  [NaN, '–'],
  [Infinity, '–'],
  [511.6, '512', 3],
])
says('seconds', [
  [7.2071, '7.207 s'],
  [0.36229, '362.3 ms'],
  [1.424e-5, '14.24 µs'],
  [0.99996, '1.000 s'],
  [0.9999, '999.9 ms'],
  [0, '0 s'],
  [-0.0123, '-12.30 ms'],
  [3e-10, '0.3000 ns'],
  [0.4882, '488 ms', 3],
])
says('bytes', [
  [41.58e9, '41.58 GB'],
  [0, '0 B'],
  [512, '512.0 B'],
  [1e15, '1.000 PB'],
  [84.9e9, '84.9 GB', 3],
  [999.99e6, '1.000 GB'],
])
says('bytesPerSecond', [
  [364.5e9, '365 GB/s'],
  [48e9, '48.0 GB/s'],
])
says('flops', [
  [9.62e11, '962.0 GFLOP'],
  [2.15178e12, '2.152 TFLOP'],
])
says('percent', [
  [0.516, '51.6 %'],
  [0, '0.0 %'],
  [0.0003, '0.03 %'],
  [0.00004, '0.004 %'],
  [1e-9, '< 0.001 %'],
  [-0.0225, '-2.3 %'],
  [1.308, '130.8 %'],
  [NaN, '–'],
])
says('roughPercent', [
  [0.154, '15 %'],
  [0.004, '0.4 %'],
  [0.0001, 'under 0.1 %'],
  [0, '0 %'],
  [-0.031, '-3 %'],
])
says('integer', [
  [16384, '16,384'],
  [0, '0'],
  [-1234, '-1,234'],
])

test('change has a sign', () => {
  assert.equal(plain(format.change(0.012, format.seconds)), '+12.00 ms')
  assert.equal(plain(format.change(-0.012, format.seconds)), '-12.00 ms')
  assert.equal(plain(format.change(1e-9, format.percent)), '< 0.001 %')
})

test('ticks of an axis share a unit', () => {
  assert.deepEqual([0, 0.2, 1.2].map(format.secondsTicks(1.2)).map(plain), ['0', '0.2 s', '1.2 s'])
  assert.deepEqual([0, 0.05, 0.6].map(format.secondsTicks(0.6)).map(plain), ['0', '50 ms', '600 ms'])
  assert.deepEqual([0, 2e10].map(format.bytesTicks(9e10)).map(plain), ['0', '20 GB'])
})

test('numbers in sentences', () => {
  assert.equal(format.counted(1, 'GPU'), '1 GPU')
  assert.equal(format.counted(16384, 'GPU'), '16,384 GPUs')
  assert.equal(format.counted(2, 'class', 'classes'), '2 classes')
  assert.equal(format.listed([]), '')
  assert.equal(format.listed(['a', 'b', 'c']), 'a, b and c')
})
