// §22.2: pages of a list: `limit`, and `cursor` as the page before said it.
import { fail } from '../../errors/gateway-error.ts';
import type { PagePlace, PageRequest } from '../../store/page.ts';

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

export const renderCursor = (place: AdminPlace | undefined): string | undefined =>
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
