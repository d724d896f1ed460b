// A part of the composition root: what the pages show of this gateway.
import type { Clock } from '../core/clock.ts';
import type { Config } from '../core/config/config.ts';
import type { Endpoint } from '../core/endpoint.ts';
import type { Log } from '../core/log.ts';
import { listTools } from '../features/mcp/catalog/list-tools.ts';
import type { ServedCatalog } from '../features/mcp/catalog/served-catalog.ts';
import { createSiteEndpoints } from '../features/site/endpoints.ts';
import type { Logo } from '../features/site/logo.ts';
import { createGetPublicTools, type GetPublicTools } from '../features/site/public-tools.ts';
import { listSiteFacts } from '../features/site/site-facts.ts';

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
