// §22.2: pages of a list: `limit`, and `cursor` as the page before said it.
import { fail } from '../../core/errors/gateway-error.ts';
import type { PagePlace, PageRequest } from '../../core/store/store.ts';

const DEFAULT_LIMIT = 50;
const MAX_LIMIT = 100;
const LIMIT = /^\d{1,3}$/;
const CURSOR = /^(\d{1,16})\.(\d{1,9})$/;

/** @throws GatewayError `bad_request`. */
export function readPageRequest(query: URLSearchParams): PageRequest {
  return { from: readCursor(query.get('cursor')), limit: readLimit(query.get('limit')) };
}

export const renderCursor = (place: PagePlace | undefined): string | undefined =>
  place && `${place.time}.${place.skip}`;

function readLimit(text: string | null): number {
  if (text === null) return DEFAULT_LIMIT;
  const limit = LIMIT.test(text) ? Number(text) : 0;
  return limit >= 1 && limit <= MAX_LIMIT
    ? limit
    : fail('bad_request', { details: `limit must be a whole number from 1 to ${MAX_LIMIT}.` });
}

function readCursor(text: string | null): PagePlace | undefined {
  if (text === null) return undefined;
  const [, time, skip] = CURSOR.exec(text) ?? [];
  return time === undefined
    ? fail('bad_request', { details: 'cursor must be the nextCursor of the page before.' })
    : { time: Number(time), skip: Number(skip) };
}
