// Thousands of small rectangles, written straight into a picture: the time it takes hardly depends on how many.

const LITTLE = new Uint8Array(new Uint32Array([1]).buffer)[0] === 1;
const words = new Map();

// A CSS colour "#rrggbb" as the word that a picture holds for one pixel.
export function word(color) {
  let found = words.get(color);
  if (found === undefined) {
    const [r, g, b] = [1, 3, 5].map((at) => parseInt(color.slice(at, at + 2), 16) || 0);
    found = LITTLE ? ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0 : ((r << 24) | (g << 16) | (b << 8) | 255) >>> 0;
    words.set(color, found);
  }
  return found;
}

// One colour over another, by so much.
export function mix(over, under, share) {
  const part = (color, at) => parseInt(color.slice(at, at + 2), 16) || 0;
  const both = [1, 3, 5].map((at) => Math.round(part(over, at) * share + part(under, at) * (1 - share)));
  return `#${both.map((value) => value.toString(16).padStart(2, "0")).join("")}`;
}

export class Raster {
  constructor() { this.width = this.height = 0; }

  begin(width, height, color) {
    if (width !== this.width || height !== this.height) {
      this.width = width; this.height = height;
      this.image = new ImageData(width, height);
      this.pixels = new Uint32Array(this.image.data.buffer);
    }
    this.pixels.fill(word(color));
  }

  fill(left, top, right, bottom, value) {
    const { pixels, width } = this;
    const from = Math.max(0, left), to = Math.min(width, right), until = Math.min(this.height, bottom);
    for (let y = Math.max(0, top); y < until; y++) {
      const end = y * width + to;
      for (let at = y * width + from; at < end; at++) pixels[at] = value;
    }
  }

  put(ctx) { ctx.putImageData(this.image, 0, 0); }
}
