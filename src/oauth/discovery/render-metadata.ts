import { createJsonReply, type Reply } from '../../endpoint/message.ts';

/** A metadata document, which clients and caches may keep for five minutes. */
export const renderMetadata = (document: unknown): Reply =>
  createJsonReply(200, document, { 'Cache-Control': 'public, max-age=300' });
