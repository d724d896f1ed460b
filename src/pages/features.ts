// The pages of this site, and the operators' page (§22), as the gateway opens them.

import { listTools } from '../mcp/catalog/own-catalog.ts';
import type { ServedCatalog } from '../mcp/catalog/served-catalog.ts';
import { defineFeature } from '../mcp/feature.ts';
import type { ServedFile } from '../mcp/upstream/served-file.ts';
import { openOperatorsNotes } from './admin.ts';

import type { Logo } from './open-site.ts';
import { openSite } from './open-site.ts';
import { createServerCardEndpoints } from './server-card.ts';

interface IssuerNeeds {
  readonly findIssuerOf: Parameters<typeof openOperatorsNotes>[1];
}

/** What is noted for operators, before they ask; undefined where there are none. */
export const operatorsNotes = defineFeature({
  name: 'notes for operators',
  open: (runtime, { findIssuerOf }: IssuerNeeds) => ({
    gives: { operated: openOperatorsNotes(runtime, findIssuerOf) },
  }),
});

interface SiteNeeds {
  readonly logo: Logo | undefined;
  readonly servedFile: ServedFile;
  /** Of `/mcp`. */
  readonly catalog: ServedCatalog;
  /** Whether users are told what each path costs. */
  readonly hasPaths: boolean;
}

/** What pages show of this gateway, and what it says of itself to those who have not connected yet. */
export const site = defineFeature({
  name: 'site',
  open(runtime, { logo, servedFile, catalog, hasPaths }: SiteNeeds) {
    const { getPublicTools, endpoints } = openSite(runtime, logo, () => listTools(catalog), {
      hasConnections: () => servedFile.listConnectionServers().length > 0,
      hasPaths,
    });
    return {
      gives: { getPublicTools },
      endpoints: [...endpoints, ...createServerCardEndpoints(runtime.config, servedFile)],
    };
  },
});
