// §22: what requests of the operators' API say, and the pages of its lists.

// §22.2: pages of a list: `limit`, and `cursor` as the page before said it.

import { fail } from '../../errors/gateway-error.ts';
import { readEmail } from '../../http/endpoint/message.ts';
import { findIssuerOf } from '../../logins/auth/machine-clients.ts';
import type { GrantSelection } from '../../logins/broker/logouts.ts';
import type { UserIdentity } from '../../logins/grants/grant.ts';
import type { PolicyCaller } from '../../mcp/calls/policy.ts';
import { isObject, type JsonObject } from '../../platform/json.ts';
import type { Page, PagePlace, PageRequest } from '../../store/page.ts';
import type { Owner } from '../../store/store.ts';

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

// §22.2, §22.3: whose something is: by `user`, and by `issuer` where that is another than `OIDC_ISSUER`.

/** Whose users there are: those of `OIDC_ISSUER`, and the gateway's own clients. */
export type Issuers = Parameters<typeof findIssuerOf>[1];

/** Undefined where nobody is named. @throws GatewayError `bad_request`. */
export function readSelectedUser(
  query: URLSearchParams,
  issuers: Issuers,
): UserIdentity | undefined {
  const sub = query.get('user') ?? '';
  const issuer = query.get('issuer') ?? '';
  if (sub !== '') return { sub, issuer: issuer === '' ? findIssuerOf(sub, issuers) : issuer };
  if (issuer === '') return undefined;
  return fail('bad_request', { details: 'issuer says whose user it is: name the user, too.' });
}

/** As lists name them: most are of `OIDC_ISSUER`. */
export const describeUser = (
  { sub, issuer }: Owner,
  { issuer: defaultIssuer }: Pick<Issuers, 'issuer'>,
) => ({ user: sub, issuer: issuer === defaultIssuer ? undefined : issuer });

/** Each once, and with a value: what was mistyped must not end more than was meant. */
const isClear = (query: URLSearchParams, names: ReadonlySet<string>): boolean =>
  [...query].every(
    ([name, value]) => names.has(name) && value !== '' && query.getAll(name).length === 1,
  );

/** @throws GatewayError `bad_request` where it is not said whose logins are to end, or anything else is. */
export function readGrantSelection(query: URLSearchParams, issuers: Issuers): GrantSelection {
  if (query.get('all') === 'true' && query.size === 1) return { kind: 'all' };
  if (isClear(query, OF_GRANTS)) {
    const user = readSelectedUser(query, issuers);
    const client = query.get('client') ?? undefined;
    if (user !== undefined) return { kind: 'user', user, client };
    if (client !== undefined) return { kind: 'client', client };
  }
  return fail('bad_request', {
    details:
      'Say whose logins are to end: user=SUB, client=ID, or both, each once and with a value; or all=true alone, for everybody. issuer=URL beside user=SUB names a user of another issuer than OIDC_ISSUER.',
  });
}

const OF_GRANTS: ReadonlySet<string> = new Set(['user', 'issuer', 'client']);

/** Whose connections are to end, or those at which server; or those of one user at one server. @throws GatewayError `bad_request`, likewise. */
export function readConnectionSelection(query: URLSearchParams, issuers: Issuers) {
  if (!isClear(query, OF_CONNECTIONS) || query.size === 0) {
    fail('bad_request', {
      details:
        'Say which connections are to end: server=NAME, user=SUB, or both, each once and with a value. issuer=URL beside user=SUB names a user of another issuer than OIDC_ISSUER.',
    });
  }
  return { server: query.get('server') ?? undefined, user: readSelectedUser(query, issuers) };
}

/** As the audit log has it. */
export const describeSelection = (query: URLSearchParams): string =>
  [...query].map((parameter) => parameter.join(' ')).join(', ');

const OF_CONNECTIONS: ReadonlySet<string> = new Set(['server', 'user', 'issuer']);

// §22.4: the person whose tools an operator asks about, as a token would name them.

/** @throws GatewayError `bad_request` where nobody is named. */
export function readPerson(query: URLSearchParams): PolicyCaller {
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
