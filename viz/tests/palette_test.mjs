// Colours that are to be told apart can be, with all kinds of colour vision, and text can be read.
import assert from 'node:assert/strict'
import test from 'node:test'
import { load } from './load.mjs'

const [{ axes, colour, colourOfKind, inkOn, phases }] = await load('palette.ts')
const themes = ['light', 'dark']

const channels = hex => [1, 3, 5].map(at => parseInt(hex.slice(at, at + 2), 16) / 255).map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
const luminance = hex => channels(hex).reduce((sum, c, at) => sum + c * [0.2126, 0.7152, 0.0722][at], 0)
const contrast = (a, b) => (Math.max(luminance(a), luminance(b)) + 0.05) / (Math.min(luminance(a), luminance(b)) + 0.05)

// Machado, Oliveira, Fernandes: A physiologically-based model for simulation of color vision deficiency (2009), severity 1.0.
const visions = {
  normal: [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
  protanopia: [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
  deuteranopia: [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
  tritanopia: [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
}

/// Björn Ottosson's Oklab, in which distances are about even to the eye.
function oklab([r, g, b]) {
  const l = Math.cbrt(0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b)
  const m = Math.cbrt(0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b)
  const s = Math.cbrt(0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b)
  return [0.2104542553 * l + 0.793617785 * m - 0.0040720468 * s, 1.9779984951 * l - 2.428592205 * m + 0.4505937099 * s,
    0.0259040371 * l + 0.7827717662 * m - 0.808675766 * s]
}

function distance(a, b, vision) {
  const seen = hex => oklab(visions[vision].map(row => Math.min(1, Math.max(0, row.reduce((sum, factor, at) => sum + factor * channels(hex)[at], 0)))))
  return Math.hypot(...seen(a).map((part, at) => part - seen(b)[at]))
}

function assertDistinct(names, theme, least) {
  for (const vision of Object.keys(visions)) {
    names.forEach((a, at) => names.slice(at + 1).forEach(b => {
      const apart = distance(colour(a, theme), colour(b, theme), vision)
      assert.ok(apart > least, `${a} and ${b} are ${apart.toFixed(3)} apart with ${vision} vision in the ${theme} theme`)
    }))
  }
}

for (const theme of themes) {
  // Okabe and Ito's own colours are 0.076 apart at the closest, blue green and reddish purple with deuteranopia.
  test(`phases, axes and the bubble differ, ${theme}`, () => assertDistinct([...phases, ...axes, 'bubble'], theme, 0.075))
  test(`parts of the whole step differ, ${theme}`, () => assertDistinct(['compute', ...axes, 'bubble', 'optimizer'], theme, 0.075))
  test(`neighbouring layers of memory differ, ${theme}`, () => {
    for (const pair of [['parameters', 'gradients'], ['gradients', 'optimizer state'], ['optimizer state', 'activations'], ['activations', 'buffers']]) {
      assertDistinct(pair, theme, 0.075)
    }
  })
  test(`text can be read, ${theme}`, () => {
    for (const ink of ['ink', 'quiet', 'accent', 'bad', 'good']) {
      for (const paper of ['page', 'panel']) {
        const ratio = contrast(colour(ink, theme), colour(paper, theme))
        assert.ok(ratio >= 4.5, `${ink} on ${paper}: ${ratio.toFixed(2)}`)
      }
    }
    for (const mark of [...phases, ...axes, 'compute', 'bubble']) {
      const ratio = contrast(inkOn(mark, theme), colour(mark, theme))
      assert.ok(ratio >= 4.5, `ink on ${mark}: ${ratio.toFixed(2)}`)
    }
  })
}

test('kinds have the colour of their axis or phase', () => {
  assert.equal(colourOfKind('all_reduce (tp)'), 'tp')
  assert.equal(colourOfKind('all_reduce (none)'), 'none')
  assert.equal(colourOfKind('gemm backward-weight'), 'backward-weight')
  assert.equal(colourOfKind('attention_backward backward-input'), 'backward-input')
  assert.equal(colourOfKind('gemm'), 'compute')
  assert.equal(colourOfKind('wait'), 'bubble')
})
