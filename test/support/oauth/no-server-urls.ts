import type { ServerUrls } from '../../../src/config/server-urls.ts';

/** Of a gateway that has no server behind it. */
export const NO_SERVER_URLS: ServerUrls = { isResource: () => false, isAudience: () => false };
