// The requests of one session that have no answer yet: what the server says elsewhere may belong to one of them.
import type { UpstreamRequest } from '../upstream.ts';

export interface OpenRequests {
  readonly size: number;
  /** Returns its place, by which it is removed. `token` is its progress token. */
  add(token: number, request: UpstreamRequest): number;
  remove(place: number): void;
  find(token: number): UpstreamRequest | undefined;
  /** Whether one of them says so. */
  some(test: (request: UpstreamRequest) => boolean): boolean;
  /** The request that anything must belong to, where there is only one. */
  findOnly(): UpstreamRequest | undefined;
}

interface OpenRequest {
  readonly token: number;
  readonly request: UpstreamRequest;
}

/**
 * Places that are used again, and no Map: the tables that a Map leaves behind when many come and go keep what was in
 * them past several garbage collections, which took a tenth of all the time of a call.
 */
export function createOpenRequests(): OpenRequests {
  const places: (OpenRequest | undefined)[] = [];
  const free: number[] = [];
  let size = 0;

  return {
    get size() {
      return size;
    },
    add(token, request) {
      const place = free.pop() ?? places.length;
      places[place] = { token, request };
      size += 1;
      return place;
    },
    remove(place) {
      places[place] = undefined;
      free.push(place);
      size -= 1;
    },
    find: (token) => places.find((open) => open?.token === token)?.request,
    some: (test) => places.some((open) => open !== undefined && test(open.request)),
    findOnly: () => (size === 1 ? places.find((open) => open !== undefined)?.request : undefined),
  };
}
