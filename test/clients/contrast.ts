import type { Page } from 'playwright-core';

export interface Contrast {
  readonly text: string;
  /** WCAG 2.2, 1 to 21. */
  readonly ratio: number;
  /** Relative luminance of what is behind it, 0 to 1. */
  readonly ground: number;
}

/** Of what is shown for `selector`, by the colours that the browser computed. */
export async function contrasts(page: Page, selector: string): Promise<readonly Contrast[]> {
  const found = await page.evaluate<{ text: string; color: string; ground: string }[]>(
    `[...document.querySelectorAll(${JSON.stringify(selector)})].map((element) => {
      let behind = element;
      while (getComputedStyle(behind).backgroundColor === 'rgba(0, 0, 0, 0)') behind = behind.parentElement;
      return {
        text: element.textContent,
        color: getComputedStyle(element).color,
        ground: getComputedStyle(behind).backgroundColor,
      };
    })`,
  );
  return found.map(({ text, color, ground }) => {
    const [one, other] = [luminance(color), luminance(ground)];
    const ratio = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
    return { text, ratio, ground: other };
  });
}

/** Of an opaque colour, as browsers write computed ones. */
function luminance(color: string): number {
  const written = /^rgb\((\d+), (\d+), (\d+)\)$/.exec(color);
  if (written === null) throw new Error(`${color} is not opaque`);
  const [red = 0, green = 0, blue = 0] = written.slice(1).map((part) => {
    const value = Number(part) / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}
