// What of a URI may be told, in a log line, the audit log, a trace or a page: passwords stand in its user info,
// arguments and keys in its query and fragment. Callers write URIs as they like, and not every reader of URIs
// agrees with every other: what one of them could take for these parts goes.

/** From here on it is query or fragment: also where they are percent-encoded, once or more, or a template's. */
const QUERY = /\{?(?:[?#]|%(?:25)*(?:3f|23)).*$/is;
const SCHEME = /^[a-z][a-z0-9+.-]*:/i;
const AT = /@|%(?:25)*40/gi;

/** A text that is a URI, or is meant to be one. Linear in its length. */
export function stripUri(uri: string): string {
  // Browsers leave out what is taken out here (WHATWG URL, "basic URL parser"), and read a backslash as a slash.
  const told = uri
    .replace(/[\t\n\r]/g, '')
    .replace(/^[\0-\x20]+/, '')
    .replace(QUERY, '');
  const [scheme = ''] = SCHEME.exec(told) ?? [];
  const [slashes = ''] = /^[/\\]*/.exec(told.slice(scheme.length)) ?? [];
  const start = scheme.length + slashes.length;
  return told.slice(0, start) + told.slice(start + findHost(told.slice(start)));
}

/** The index after the user info; 0 without one. */
function findHost(text: string): number {
  const [authority = ''] = /^[^/\\]*/.exec(text) ?? [];
  // A port is digits. What else stands behind a colon is the start of a password with a slash in it.
  const hasPort = /^(?:\[[^\]]*\]|[^:]*)(?::\d*)?$/.test(authority);
  const end = hasPort ? authority.length : text.length;
  const last = [...text.slice(0, end).matchAll(AT)].at(-1);
  return last === undefined ? 0 : last.index + last[0].length;
}

/** A word with a scheme, or one that begins with two slashes. */
const URI_IN_TEXT = /(?<![a-z0-9+.-])[a-z][a-z0-9+.-]*:[^\s"\\]+|(?<![:\w])\/\/[^\s"\\]+/gi;

/**
 * A text from elsewhere that may have URIs in it, such as a server's message. Of those without slashes only the query
 * goes: `name:ada@example.com` is more often no URI.
 */
export const stripUrisIn = (text: string): string =>
  /[?#@%]/.test(text) ? text.replace(URI_IN_TEXT, stripWord) : text;

const stripWord = (word: string): string =>
  /^[^/]*\/\//.test(word) ? stripUri(word) : word.replace(QUERY, '');
