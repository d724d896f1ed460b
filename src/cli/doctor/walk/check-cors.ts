// The preflight that a browser sends before a page may call /mcp (Fetch §3.2).
import { isOnThisMachine } from '../../../platform/address.ts';
import { type Found, failure, ok, warning } from '../finding.ts';
import type { Walk } from './walk.ts';

const NEEDED_HEADERS = ['authorization', 'content-type', 'mcp-protocol-version', 'mcp-session-id'];
const READ_HEADERS = ['www-authenticate', 'mcp-session-id'];

/** Where the Inspector runs, as most browser clients on a developer's machine do. */
const LOCAL_ORIGIN = 'http://localhost:6274';

export async function checkCors(walk: Walk): Promise<Found> {
  const own = new URL(walk.baseUrl).origin;
  const [ownProblem, localProblem] = await Promise.all([
    findProblem(walk, own),
    findProblem(walk, LOCAL_ORIGIN),
  ]);
  return [
    ownProblem === undefined
      ? ok('cors', `A page at ${own} may call it, with a token, from a browser.`)
      : failure('cors', {
          what: `A browser would not let a page at ${own} call it: ${ownProblem}.`,
          setting: 'BASE_URL',
          remedy: `check that it is BASE_URL=${walk.baseUrl}, and that the proxy in front passes OPTIONS requests and Access-Control-* headers on.`,
        }),
    localProblem === undefined
      ? ok('cors.local', `So may a page at ${LOCAL_ORIGIN} (the Inspector).`)
      : // A public gateway need not accept pages that run on its users' machines.
        (isOnThisMachine(new URL(own).hostname) ? warning : ok)('cors.local', {
          what: `A page at ${LOCAL_ORIGIN} (the Inspector) may not: ${localProblem}.`,
          why: 'Programs that are not web pages do not need it.',
          setting: 'ALLOWED_ORIGINS',
          remedy: `if your users have browser clients, list where these run: ALLOWED_ORIGINS=${LOCAL_ORIGIN}`,
        }),
  ];
}

/** Undefined where a browser would let the page call. */
async function findProblem({ endpoint, probe }: Walk, origin: string): Promise<string | undefined> {
  const { status, headers } = await probe(endpoint, {
    method: 'OPTIONS',
    headers: {
      Origin: origin,
      'Access-Control-Request-Method': 'POST',
      'Access-Control-Request-Headers': NEEDED_HEADERS.join(','),
    },
  });
  if (status < 200 || status > 299) return `the preflight is answered ${status}`;
  const allowed = headers.get('access-control-allow-origin');
  if (allowed !== origin && allowed !== '*')
    return `Access-Control-Allow-Origin is ${allowed ?? 'missing'}`;
  const missing = NEEDED_HEADERS.filter(
    (name) => !readNames(headers.get('access-control-allow-headers')).includes(name),
  );
  if (missing.length > 0) return `Access-Control-Allow-Headers lacks ${missing.join(', ')}`;
  if (!readNames(headers.get('access-control-allow-methods')).includes('post'))
    return 'Access-Control-Allow-Methods lacks POST';
  // What the page may read of the 401, without which it finds no login.
  const refusal = await probe(endpoint, { headers: { Origin: origin }, method: 'POST' });
  const exposed = readNames(refusal.headers.get('access-control-expose-headers'));
  const hidden = READ_HEADERS.filter((name) => !exposed.includes(name));
  return hidden.length === 0
    ? undefined
    : `Access-Control-Expose-Headers lacks ${hidden.join(', ')}`;
}

const readNames = (header: string | null): readonly string[] =>
  (header ?? '').split(',').map((name) => name.trim().toLowerCase());
