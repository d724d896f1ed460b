// Drawings inside a page: it loads none. They say nothing that the text beside them does not.

const draw = (viewBox: string, size: number, paths: string): string =>
  `<svg viewBox="${viewBox}" width="${size}" height="${size}" aria-hidden="true" focusable="false">${paths}</svg>`;

const STROKE =
  'fill="none" stroke="currentColor" stroke-width="2" stroke-linecap="round" stroke-linejoin="round"';

export const ICONS = {
  /** The gate, as on the site. */
  postern: draw(
    '0 0 32 32',
    28,
    '<path d="M5 30V15a11 11 0 0 1 22 0v15z" fill="#0b5c57"/><path d="M10 30V16a6 6 0 0 1 12 0v14z" fill="#e9f4f2"/><circle cx="18.5" cy="22" r="1.5" fill="#0b5c57"/>',
  ),
  check: draw('0 0 16 16', 16, `<path d="M3 8.5 6.5 12 13 4.5" ${STROKE}/>`),
  warning: draw('0 0 24 24', 24, `<path d="M12 5v9m0 5v.01" ${STROKE}/>`),
} as const;
