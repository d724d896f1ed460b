// Text from elsewhere, made fit for a sentence, a page or a parameter.

/** Ends with `…` where it is longer than `max` characters. */
export function shorten(text: string, max: number): string {
  const characters = [...text];
  return characters.length > max ? `${characters.slice(0, max).join('')}…` : text;
}

/** Some providers end their descriptions with a full stop, others do not. */
export const toSentence = (text: string): string => `${text.replace(/\.$/, '')}.`;

/**
 * RFC 6749 §4.1.2.1, §5.2: `error_description` is printable ASCII without quote and backslash. White
 * space becomes spaces, anything else an apostrophe, as quotation marks read best.
 */
export const toErrorDescription = (text: string): string =>
  text.replace(/\s/g, ' ').replace(/[^\x20-\x21\x23-\x5B\x5D-\x7E]/g, "'");
