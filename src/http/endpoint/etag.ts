// RFC 9110 §8.8.3, §13.1.2: documents that callers ask for again only to learn whether they have changed.
import { hashSha256 } from '../../platform/ids.ts';
import type { Reply, ReplyHeaders } from './message.ts';

/** Weak: the same whatever coding it is sent in. */
export const createEtag = (body: string | Uint8Array): string =>
  `W/"${hashSha256(body).slice(0, 27)}"`;

/** Weak comparison with each entry of `If-None-Match`. */
export const matchesEtag = (ifNoneMatch: string | undefined, etag: string): boolean =>
  ifNoneMatch?.split(',').some((entry) => ['*', etag, etag.slice(2)].includes(entry.trim())) ??
  false;

export const createNotModifiedReply = (etag: string, caching: ReplyHeaders): Reply => ({
  status: 304,
  headers: { ...caching, ETag: etag },
});
