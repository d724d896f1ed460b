/** What of a URI may be told: passwords stand in user info, and arguments in queries. */
export const stripUri = (uri: string): string =>
  uri.replace(/[?#].*$/s, '').replace(/^([a-z][a-z0-9+.-]*:\/\/)[^/]*@/i, '$1');
