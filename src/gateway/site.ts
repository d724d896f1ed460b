// A part of the composition root: what the pages show of this gateway.

import type { Config } from '../config/config.ts';
import type { Endpoint } from '../endpoint/endpoint.ts';
import { listTools } from '../mcp/catalog/list-tools.ts';
import type { ServedCatalog } from '../mcp/catalog/served-catalog.ts';
import type { Clock } from '../platform/clock.ts';
import type { Log } from '../platform/log.ts';
import type { Logo } from '../site/logo.ts';
import { createGetPublicTools, type GetPublicTools } from '../site/public-tools.ts';
import { createSiteEndpoints, listSiteFacts } from '../site/site-facts.ts';

export interface SiteParts {
  readonly logo: Logo | undefined;
  readonly catalog: ServedCatalog;
  readonly clock: Clock;
  readonly log: Log;
}

export interface PublicSite {
  readonly endpoints: readonly Endpoint[];
  /** Undefined where strangers see none. */
  readonly getPublicTools: GetPublicTools | undefined;
}

export function createPublicSite(
  config: Config,
  { logo, catalog, clock, log }: SiteParts,
): PublicSite {
  const getPublicTools = config.site.showsTools
    ? createGetPublicTools({ listTools: () => listTools(catalog), clock, log })
    : undefined;
  const facts = listSiteFacts(config, logo?.url);
  return {
    endpoints: [...createSiteEndpoints(facts, getPublicTools), ...(logo?.endpoints ?? [])],
    getPublicTools,
  };
}
