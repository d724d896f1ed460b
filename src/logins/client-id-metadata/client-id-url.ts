// §4.6, OAuth Client ID Metadata Document (draft) §3: which URLs may be a client id.

const MAX_LENGTH = 2048;
const MAX_HOST = 253;

/** In any spelling: what claims to be such a URL is judged as one and reaches nobody else. */
export const isClientDocumentId = (clientId: string): boolean => /^https:/i.test(clientId);

/** `problem` is for the client's developer: a sentence that repeats nothing of what it refuses. */
export type ClientIdUrl = { readonly url: URL } | { readonly problem: string };

/**
 * The URL of a client's metadata document.
 *
 * The draft allows a query ("SHOULD NOT") and a port; neither is taken here: each would make any
 * number of client ids out of one document, or let a caller probe the ports of a host.
 *
 * @param allowedHosts - `*` for any public host, else exact names in lower case.
 */
export function parseClientIdUrl(clientId: string, allowedHosts: readonly string[]): ClientIdUrl {
  const found = URL_PROBLEMS.find(([applies]) => applies(clientId));
  if (found !== undefined) return { problem: `The client_id ${found[1]}.` };
  const url = new URL(clientId);
  const { hostname } = url;
  if (!isHostName(hostname)) {
    return {
      problem:
        'The client_id must name its host by a full DNS name, not by an address or localhost.',
    };
  }
  if (!allowedHosts.includes('*') && !allowedHosts.includes(hostname)) {
    return {
      problem: `The host ${hostname} of the client_id is not allowed here. An operator can add it to CIMD_ALLOWED_HOSTS.`,
    };
  }
  return { url };
}

/** The first that applies is told; each row may rely on those above it. */
const URL_PROBLEMS: readonly (readonly [applies: (id: string) => boolean, problem: string])[] = [
  [(id) => id.length > MAX_LENGTH, `is longer than ${MAX_LENGTH} characters`],
  [
    (id) => /[^\x21-\x7E]|\\/.test(id),
    'contains white space, a control character, a backslash or a character beyond ASCII',
  ],
  [(id) => !id.startsWith('https://'), 'does not begin with https://'],
  [(id) => id.includes('#'), 'has a fragment'],
  [(id) => id.includes('?'), 'has a query'],
  [(id) => getAuthority(id).includes('@'), 'has user info'],
  [(id) => /:\d*$/.test(getAuthority(id)), 'has a port; only the default port is allowed'],
  [(id) => getAuthority(id).endsWith('.'), 'has a host that ends with a dot'],
  [(id) => !URL.canParse(id), 'is not a valid URL'],
  [(id) => getPath(id) === '' || getPath(id) === '/', 'has no path'],
  [(id) => getPath(id).split('/').some(isDotSegment), 'has a path with a segment . or ..'],
  // It has to mean the same to every reader, byte by byte: it is compared as a string.
  [(id) => new URL(id).href !== id, 'is not in its normal form, with a host in lower case'],
];

const LABEL = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;

/** At least two labels, the last one no number; international names in their ASCII form. */
function isHostName(host: string): boolean {
  const labels = host.split('.');
  const last = labels.at(-1) ?? '';
  return (
    host.length <= MAX_HOST &&
    labels.length > 1 &&
    labels.every((label) => LABEL.test(label)) &&
    /^[a-z]/.test(last) &&
    last !== 'localhost'
  );
}

/** WHATWG URL: %2e counts as a dot. */
const isDotSegment = (segment: string): boolean => /^(\.|%2e){1,2}$/i.test(segment);

const getAuthority = (id: string): string => /^https:\/\/([^/?#]*)/.exec(id)?.[1] ?? '';

const getPath = (id: string): string => id.slice('https://'.length + getAuthority(id).length);
