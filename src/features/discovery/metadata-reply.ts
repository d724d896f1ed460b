import { json, type Reply } from '../../core/message.ts';

/** A metadata document, which clients and caches may keep for five minutes. */
export const metadataReply = (document: unknown): Reply =>
  json(200, document, { 'Cache-Control': 'public, max-age=300' });
