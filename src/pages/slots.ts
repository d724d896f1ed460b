// Slots that the build leaves open in the site's files, because only the gateway that serves them knows it.

/** Values by the names that pages use in braces. For highlighters of code each is one word. */
export const SLOTS = {
  base_url: 'fill-in-base-url',
  /** Like the path of BASE_URL it begins with a slash, which that path may lack. */
  base_path: '/fill-in-base-path',
  version: 'fill-in-version',
} as const;

type SlotValues = Readonly<Record<keyof typeof SLOTS, string>>;

const SLOT = new RegExp(Object.values(SLOTS).join('|'), 'g');

export type FillSlots = (text: string) => string;

/** The same in HTML and in JavaScript: see `toInertText`. */
export function createFillSlots(values: SlotValues): FillSlots {
  const bySlot = new Map<string, string>([
    [SLOTS.base_url, toInertText(values.base_url)],
    [SLOTS.base_path, toInertText(values.base_path)],
    [SLOTS.version, toInertText(values.version)],
  ]);
  return (text) => text.replace(SLOT, (slot) => bySlot.get(slot) ?? '');
}

/**
 * A URL may have characters that mean something to HTML or to a string of JavaScript. Percent-encoded they mean
 * the same to whoever opens the URL, and nothing to either of these.
 */
const toInertText = (text: string): string =>
  text.replace(/[^\w\-.~:/?#[\]@!()*+,;=%$]/g, (sign) =>
    encodeURIComponent(sign).replace("'", '%27'),
  );

// Kinds of pages of the site, by what they may do. The theme asks as well: a page of another kind needs a policy of its own, so
// the browser has to load it anew.

/** Documentation shows text; an app calls the gateway. */
export type PageKind = 'documentation' | 'app';

/** Apps by their path below BASE_URL. Every other page is documentation. */
const APPS: ReadonlySet<string> = new Set<string>([
  '/',
  '/playground',
  '/playground/callback',
  '/admin',
]);

export const getPageKind = (path: string): PageKind => (APPS.has(path) ? 'app' : 'documentation');
