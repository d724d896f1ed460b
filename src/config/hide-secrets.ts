// What may be printed of a setting's text: anybody may see a terminal or a log.
import type { Setting } from './setting.ts';

/**
 * Of a URL neither the values of its query nor its fragment; null where nothing may be seen: of secrets, of a URL
 * with user info, and of what is no value of the setting and may have been meant for one.
 */
export function hideSecrets(
  text: string,
  { isSecret, hidesValues, rule }: Pick<Setting<unknown>, 'isSecret' | 'hidesValues' | 'rule'>,
): string | null {
  const isInvalid = rule.parse(text) === undefined;
  if (isSecret || /:\/\/[^/]*@/.test(text) || (isInvalid && text.includes('@'))) return null;
  return hidesValues ? text.replace(/=[^,]*/g, '=…') : hideQueries(text);
}

/** `https://id.example/keys?token=…#…`. Also of addresses that are not quite right. */
export const hideQueries = (text: string): string =>
  text
    .replace(/([^\s,?]*[:/][^\s,?]*)(\?[^#\s,]*)/g, (_all, address: string, query: string) =>
      address.concat(query.replace(/([?&;])([^=&;]*=)?[^&;]+/g, '$1$2…')),
    )
    .replace(/(:\/[^\s,#]*#)[^\s,]+/g, '$1…');
