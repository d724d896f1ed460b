// The pages of this site, and the operators' page (§22), as the gateway opens them.
import type { Limiter } from '../http/limits/limiter.ts';
import { createSessionPanels } from '../logins/admin/session-panels.ts';
import type { Auth } from '../logins/auth/auth.ts';
import { listTools } from '../mcp/catalog/own-catalog.ts';
import type { ServedCatalog } from '../mcp/catalog/served-catalog.ts';
import { defineFeature } from '../mcp/feature.ts';
import type { ServedFile } from '../mcp/upstream/served-file.ts';
import { noteRefusals, type OperatorsNotes, openOperatorsNotes } from './admin/create-admin.ts';
import { createServicePanels } from './admin/service-panels.ts';
import type { Logo } from './logo.ts';
import { openSite } from './open-site.ts';
import { createServerCardEndpoints } from './server-card.ts';

/** What is noted for operators, before they ask; undefined where there are none. */
export const operatorsNotes = defineFeature({
  name: 'notes for operators',
  open(runtime) {
    const operated = openOperatorsNotes(runtime);
    const noteFailure = operated?.loginFailures.note;
    return {
      gives: { operated, noteFailure, onRefusal: noteFailure && noteRefusals(noteFailure) },
    };
  },
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

interface OperatorsNeeds {
  readonly operated: OperatorsNotes | undefined;
  readonly auth: Auth;
  readonly limiter: Limiter;
  endSession(id: string): Promise<boolean>;
}

/** What operators see of sessions, and of the service itself. */
export const operators = defineFeature({
  name: 'operators',
  open(runtime, { operated, auth, limiter, endSession }: OperatorsNeeds) {
    const { describeKeySet } = auth;
    return operated === undefined || describeKeySet === undefined
      ? { gives: {} }
      : {
          gives: {},
          panels: [
            ...createSessionPanels(runtime, operated, endSession),
            ...createServicePanels(runtime, operated.loginFailures, limiter, {
              issuer: operated.issuers.issuer,
              describe: describeKeySet,
            }),
          ],
        };
  },
});
