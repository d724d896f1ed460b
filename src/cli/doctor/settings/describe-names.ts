// The first of several names, and how many more there are.
const SHOWN_NAMES = 5;

export function describeNames(names: readonly string[]): string {
  const more = names.length - SHOWN_NAMES;
  return [...names.slice(0, SHOWN_NAMES), ...(more > 0 ? [`${more} more`] : [])].join(', ');
}
