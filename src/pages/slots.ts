// Slots that the build leaves open in the site's files, because only the running gateway knows the values.

/** Values by the names that pages use in braces. Code highlighters see each name as one word. */
export const SLOTS = {
  base_url: 'fill-in-base-url',
  /** Like the path of BASE_URL, it begins with a slash, which that path may lack. */
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
 * A URL may have characters with a meaning in HTML or in a JavaScript string. Percent-encoding keeps the meaning of the URL, and
 * has none in either language.
 */
const toInertText = (text: string) =>
  text.replace(/[^\w\-.~:/?#[\]@!()*+,;=%$]/g, (sign) =>
    encodeURIComponent(sign).replace("'", '%27'),
  );

// Kinds of pages of the site, by their permissions. The theme uses them as well: a page of another kind needs a different policy,
// so the browser must reload it.

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
