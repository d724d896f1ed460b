// §22: parses requests of the operators' API and renders common parts of its responses: pages, users, and the end of one item.

// §22.2: pages of a list: `limit`, and the `cursor` from the previous page.

import type { ErrorKey } from '../../errors/catalogue.ts';
import { fail } from '../../errors/gateway-error.ts';
import type { JsonObject } from '../../platform/json.ts';
import type { PagePlace, PageRequest, StoredPage } from '../../store/page.ts';
import type { Owner } from '../../store/store.ts';
import type { AdminAct } from './admin-panel.ts';

const DEFAULT_LIMIT = '50';
const MAX_LIMIT = 100;
const LIMIT = /^\d{1,3}$/;
const CURSOR = /^(?:(?<list>\d)\.)?(?<time>\d{1,16})\.(?<skip>\d{1,9})$/;

/** A position in several lists that are read one after the other; `list` is the number of the list. */
export interface AdminPlace extends PagePlace {
  readonly list?: number;
}

export interface AdminPageRequest extends PageRequest {
  readonly from: AdminPlace | undefined;
}

/** @throws GatewayError `bad_request` */
export function readPageRequest(query: URLSearchParams, hasLists = false): AdminPageRequest {
  const cursor = query.get('cursor');
  const { list, time, skip } = (cursor !== null && CURSOR.exec(cursor)?.groups) || {};
  if (cursor !== null && (time === undefined || (list !== undefined && !hasLists)))
    fail('bad_request', { details: 'cursor must be the nextCursor of the previous page.' });
  const text = query.get('limit') ?? DEFAULT_LIMIT;
  const limit = LIMIT.test(text) ? Number(text) : 0;
  if (limit < 1 || limit > MAX_LIMIT)
    fail('bad_request', { details: `limit must be a whole number from 1 to ${MAX_LIMIT}.` });
  const place = { ...(list && { list: Number(list) }), time: Number(time), skip: Number(skip) };
  return { from: cursor === null ? undefined : place, limit };
}

/** For requests that read several lists. @throws GatewayError `bad_request` */
export const readAdminPageRequest = (query: URLSearchParams): AdminPageRequest =>
  readPageRequest(query, true);

const renderCursor = (place: AdminPlace | undefined) =>
  place && [place.list, place.time, place.skip].filter((part) => part !== undefined).join('.');

// §22.2: common parts of the lists in the operators' API.

export interface AdminPage<Item> extends StoredPage<Item> {
  readonly next: AdminPlace | undefined;
}

export const renderNext = ({ next }: AdminPage<unknown>): JsonObject => ({
  nextCursor: renderCursor(next),
});

/** For a list in memory, where a position is an index. */
export const renderNextOf = (total: number, skip: number): JsonObject => ({
  nextCursor: renderCursor(skip < total ? { time: 0, skip } : undefined),
});

export const MAX_TEXT = 200;

export const readShort = (value: unknown): string | undefined =>
  typeof value === 'string' ? value.slice(0, MAX_TEXT) : undefined;

export const renderTime = (time: number | undefined): string | undefined =>
  time === undefined ? undefined : new Date(time).toISOString();

// §22.2, §22.3: the user that a request selects: by `user`, and by `issuer` if it is not `OIDC_ISSUER`.

/** A user with a known issuer. */
export interface NamedUser extends Owner {
  readonly issuer: string;
}

/** The issuers of users: the provider, and the gateway for its own clients. */
export interface Issuers {
  /** The issuer `OIDC_ISSUER`. */
  readonly issuer: string;
  readonly findIssuerOf: (sub: string) => string;
}

/** Undefined if no user is selected. @throws GatewayError `bad_request` */
export function readSelectedUser(query: URLSearchParams, issuers: Issuers): NamedUser | undefined {
  const sub = query.get('user') ?? '';
  const issuer = query.get('issuer') ?? '';
  if (sub !== '') return { sub, issuer: issuer === '' ? issuers.findIssuerOf(sub) : issuer };
  if (issuer === '') return undefined;
  return fail('bad_request', { details: 'issuer requires user: name the user, too.' });
}

/** The form used in lists: most users are from `OIDC_ISSUER`, which is omitted. */
export const describeUser = ({ sub, issuer }: Owner, { issuer: defaultIssuer }: Issuers) => ({
  user: sub,
  issuer: issuer === defaultIssuer ? undefined : issuer,
});

/** True if each parameter is known, has a value and is not repeated: a typo must not end more than intended. */
export const isClear = (query: URLSearchParams, names: ReadonlySet<string>): boolean =>
  [...query].every(
    ([name, value]) => names.has(name) && value !== '' && query.getAll(name).length === 1,
  );

/** For the audit log. */
export const describeSelection = (query: URLSearchParams): string =>
  [...query].map((parameter) => parameter.join(' ')).join(', ');

// §22.3: ends one item of a list by its ID.

interface EndedThing {
  /** The action in the audit log. */
  readonly action: string;
  isId(text: string): boolean;
  /** False if there is no item with this ID. */
  end(id: string): Promise<boolean>;
  readonly notFound: ErrorKey;
}

export const endById = (path: string, { action, isId, end, notFound }: EndedThing): AdminAct => ({
  method: 'DELETE',
  path,
  hasParameter: isId,
  prepare({ request }) {
    const target = request.path.slice(request.path.lastIndexOf('/') + 1);
    return {
      action,
      target,
      async run() {
        if (!(await end(target))) fail(notFound);
        return { status: 204 };
      },
    };
  },
});
