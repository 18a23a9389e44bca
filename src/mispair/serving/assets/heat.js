// Which regions of a picture carried a score: the others are darkened.
"use strict";
import { $ } from "/assets/common.js";

const SIDE = 128;
const DOWN = ["at the top", "above the middle", "in the middle", "below the middle", "at the bottom"];
const ACROSS = ["far left", "left", "centre", "right", "far right"];

export function clearHeat() {
  $("heat").hidden = true;
}

export function drawHeat(regions) {
  if (!regions.length) { clearHeat(); return; }
  const canvas = $("heat");
  const most = Math.max(...regions.flat(), 1e-9);
  canvas.width = canvas.height = SIDE;
  const context = canvas.getContext("2d");
  const pixels = context.createImageData(SIDE, SIDE);
  for (let y = 0; y < SIDE; y++) {
    for (let x = 0; x < SIDE; x++) {
      const strength = Math.min(Math.max(between(regions, (y + 0.5) / SIDE, (x + 0.5) / SIDE) / most, 0), 1);
      pixels.data.set([8, 10, 14, 255 * 0.66 * (1 - strength)], 4 * (y * SIDE + x));
    }
  }
  context.putImageData(pixels, 0, 0);
  canvas.hidden = false;
}

// The value at a place (0 to 1, down and across), smooth between the middles of the cells.
function between(regions, down, across) {
  const [rows, columns] = [regions.length, regions[0].length];
  const y = Math.min(Math.max(down * rows - 0.5, 0), rows - 1);
  const x = Math.min(Math.max(across * columns - 0.5, 0), columns - 1);
  const [top, left] = [Math.floor(y), Math.floor(x)];
  const [bottom, right] = [Math.min(top + 1, rows - 1), Math.min(left + 1, columns - 1)];
  const [v, u] = [ease(y - top), ease(x - left)];
  const upper = regions[top][left] * (1 - u) + regions[top][right] * u;
  const lower = regions[bottom][left] * (1 - u) + regions[bottom][right] * u;
  return upper * (1 - v) + lower * v;
}

const ease = (t) => t * t * (3 - 2 * t);

export function strongest(regions) {
  const values = regions.flat();
  if (!values.length || Math.max(...values) <= 0) return "";
  const at = values.indexOf(Math.max(...values));
  const [y, x] = [Math.floor(at / regions[0].length), at % regions[0].length];
  const name = (names, place, of) => names[Math.round((place / Math.max(of - 1, 1)) * (names.length - 1))];
  return ` Strongest ${name(DOWN, y, regions.length)}, ${name(ACROSS, x, regions[0].length)}.`;
}
