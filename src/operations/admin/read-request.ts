// §22: what requests of the operators' API say, and the pages of its lists.

// §22.2: pages of a list: `limit`, and `cursor` as the page before said it.

import { findIssuerOf } from '../../auth/machine-clients.ts';
import { readEmail } from '../../endpoint/message.ts';
import { fail } from '../../errors/gateway-error.ts';
import type { GrantSelection } from '../../oauth/gateway-tokens/logouts.ts';
import { isObject, type JsonObject } from '../../platform/json.ts';
import type { RuleCaller } from '../../policy/rules/rules.ts';
import type { Page, PagePlace, PageRequest } from '../../store/page.ts';

const DEFAULT_LIMIT = 50;
const MAX_LIMIT = 100;
const LIMIT = /^\d{1,3}$/;
const CURSOR = /^(?<time>\d{1,16})\.(?<skip>\d{1,9})$/;
const CURSOR_IN_LISTS = /^(?:(?<list>\d)\.)?(?<time>\d{1,16})\.(?<skip>\d{1,9})$/;

/** Where several lists are read one after the other, `list` is the number of that in which the place is. */
export interface AdminPlace extends PagePlace {
  readonly list?: number;
}

export interface AdminPageRequest extends PageRequest {
  readonly from: AdminPlace | undefined;
}

/** @throws GatewayError `bad_request`. */
export function readPageRequest(query: URLSearchParams): PageRequest {
  return { from: readCursor(query.get('cursor'), CURSOR), limit: readLimit(query.get('limit')) };
}

/** Where several lists are read. @throws GatewayError `bad_request`. */
export function readAdminPageRequest(query: URLSearchParams): AdminPageRequest {
  return {
    from: readCursor(query.get('cursor'), CURSOR_IN_LISTS),
    limit: readLimit(query.get('limit')),
  };
}

const renderCursor = (place: AdminPlace | undefined): string | undefined =>
  place && [place.list, place.time, place.skip].filter((part) => part !== undefined).join('.');

function readLimit(text: string | null): number {
  if (text === null) return DEFAULT_LIMIT;
  const limit = LIMIT.test(text) ? Number(text) : 0;
  return limit >= 1 && limit <= MAX_LIMIT
    ? limit
    : fail('bad_request', { details: `limit must be a whole number from 1 to ${MAX_LIMIT}.` });
}

function readCursor(text: string | null, form: RegExp): AdminPlace | undefined {
  if (text === null) return undefined;
  const { list, time, skip } = form.exec(text)?.groups ?? {};
  return time === undefined
    ? fail('bad_request', { details: 'cursor must be the nextCursor of the page before.' })
    : { ...(list && { list: Number(list) }), time: Number(time), skip: Number(skip) };
}

// §22.2: what the lists of the operators' API have in common.

export interface AdminPage<Item> extends Page<Item> {
  readonly next: AdminPlace | undefined;
}

export const renderNext = ({ next }: AdminPage<unknown>): JsonObject => ({
  nextCursor: renderCursor(next),
});

/** Of a list that is in memory, in which a place is a number. */
export const renderNextOf = (total: number, skip: number): JsonObject => ({
  nextCursor: renderCursor(skip < total ? { time: 0, skip } : undefined),
});

export const MAX_TEXT = 200;

export const readShort = (value: unknown): string | undefined =>
  typeof value === 'string' ? value.slice(0, MAX_TEXT) : undefined;

export const renderTime = (time: number): string => new Date(time).toISOString();

// §22.6: what is to be approved: of each server the digest of what the operator was shown.

const DIGEST = /^[\w-]{43}$/;

/** @throws GatewayError `bad_request`. */
export function readDigests(body: unknown): ReadonlyMap<string, string> {
  const servers = isObject(body) && isObject(body.servers) ? Object.entries(body.servers) : [];
  const digests = servers.flatMap(([server, digest]) =>
    typeof digest === 'string' && DIGEST.test(digest) ? [[server, digest] as const] : [],
  );
  return digests.length > 0 && digests.length === servers.length
    ? new Map(digests)
    : fail('bad_request', {
        details:
          'Send {"servers": {"NAME": "DIGEST"}}, with the digest of each server as /admin/api/lock/review says it.',
      });
}

// §22.3: whose logins are to end.

/** @throws GatewayError `bad_request` where it is not said, or anything else is: what was mistyped must not end more than was meant. */
export function readGrantSelection(
  query: URLSearchParams,
  issuers: Parameters<typeof findIssuerOf>[1],
): GrantSelection {
  if (query.get('all') === 'true' && query.size === 1) return { kind: 'all' };
  const isClear = [...query].every(
    ([name, value]) => SELECTED.has(name) && value !== '' && query.getAll(name).length === 1,
  );
  const sub = query.get('user');
  const client = query.get('client');
  if (isClear && sub !== null)
    return {
      kind: 'user',
      user: { issuer: findIssuerOf(sub, issuers), sub },
      client: client ?? undefined,
    };
  if (isClear && client !== null) return { kind: 'client', client };
  return fail('bad_request', {
    details:
      'Say whose logins are to end: user=SUB, client=ID, or both, each once and with a value; or all=true alone, for everybody.',
  });
}

/** Whose connections are to end, or those at which server; or those of one user at one server. @throws GatewayError `bad_request`, likewise. */
export function readConnectionSelection(query: URLSearchParams) {
  const isClear = [...query].every(
    ([name, value]) =>
      (name === 'server' || name === 'user') && value !== '' && query.getAll(name).length === 1,
  );
  if (!isClear || query.size === 0) {
    fail('bad_request', {
      details:
        'Say which connections are to end: server=NAME, user=SUB, or both, each once and with a value.',
    });
  }
  return { server: query.get('server') ?? undefined, user: query.get('user') ?? undefined };
}

const SELECTED: ReadonlySet<string> = new Set(['user', 'client']);

// §22.4: the person whose tools an operator asks about, as a token would name them.

/** @throws GatewayError `bad_request` where nobody is named. */
export function readPerson(query: URLSearchParams): RuleCaller {
  const sub = query.get('user') ?? '';
  const email = query.get('email') ?? '';
  const groups = query.getAll('group').filter((group) => group !== '');
  if (sub === '' && email === '' && groups.length === 0) {
    fail('bad_request', { details: 'Say who it is: user, email or group.' });
  }
  const claims = {
    ...(sub !== '' && { sub }),
    ...(email !== '' && { email }),
    ...(groups.length > 0 && { groups }),
  };
  const user = {
    sub,
    claims,
    token: '',
    ...readEmail(claims),
    ...(groups.length > 0 && { groups }),
  };
  return { user, clientId: query.get('client') || undefined };
}
