// A part of the composition root: the authorization server that clients see.

import type { Config } from '../config/config.ts';
import type { ServerUrls } from '../config/server-urls.ts';
import type { CallApprovals } from '../control/approvals/approvals.ts';
import type { Endpoint } from '../http/endpoint/endpoint.ts';
import type { NamedPaths } from '../http/endpoint/named-paths.ts';
import {
  createProviderEndpoints,
  type ProviderMetadata,
} from '../http/oauth-client/provider-metadata.ts';
import type { ConnectionServer } from '../mcp/upstream/connection.ts';
import type { ConnectionParts } from '../mcp/upstream/connections.ts';
import type { GetPublicTools } from '../pages/open-site.ts';
import type { Clock } from '../platform/clock.ts';
import type { Fetch } from '../platform/fetch-with-limits.ts';
import type { Log } from '../platform/log.ts';
import type { PublicNetworks } from '../runtime/runtime.ts';
import type { Seal } from '../store/seal/seal.ts';
import { warnOfForeignSecrets } from '../store/seal/secrets.ts';
import type { KeyValue } from '../store/store.ts';
import type { Audit } from '../telemetry/audit/audit.ts';
import type { Tracing } from '../telemetry/tracing/tracing.ts';
import type { Auth } from './auth/auth.ts';
import type { MachineClients } from './auth/machine-clients.ts';
import type { BrokerParts } from './broker/open-broker.ts';
import { createClientDocuments } from './client-id-metadata/client-documents.ts';
import { createDocumentOffer, createUncheckedOffer } from './client-id-metadata/document-offer.ts';
import { createDiscoveryEndpoints, createServerMetadata } from './discovery.ts';
import { createOAuthEndpoints } from './endpoints.ts';
import type { NoteLoginFailure } from './login-failures.ts';
import { createOAuth } from './oauth.ts';
import { auditLogins, noteFailures, observeLogins } from './observe-logins.ts';
import { selectRedirectUriRules } from './redirect-uri.ts';

export interface AuthorizationParts {
  readonly store: KeyValue;
  readonly fetch: Fetch;
  readonly clock: Clock;
  readonly log: Log;
  /** Undefined where nothing is sealed: in proxy mode without a consent page. */
  readonly loginSeal: Seal | undefined;
  /** Undefined without an issuer. */
  readonly metadata: ProviderMetadata | undefined;
  readonly inspectToken: Auth['inspectToken'];
  readonly verifyToken: Auth['verifyToken'];
  readonly serverUrls: ServerUrls;
  /** What there is at `/mcp/<name>`. */
  readonly namedPaths: NamedPaths;
  /** Undefined where strangers see none. */
  readonly getPublicTools: GetPublicTools | undefined;
  readonly outbound: PublicNetworks;
  /** Undefined without `AUDIT_LOG`. */
  readonly audit: Audit | undefined;
  /** Undefined where nothing is traced. */
  readonly tracing: Tracing | undefined;
  /** For broker mode. */
  readonly broker?: BrokerParts | undefined;
  /** Likewise: calls that users have to agree to (§27). */
  readonly callApprovals?: CallApprovals | undefined;
  readonly connections?: ConnectionParts | undefined;
  /** Those of the configuration file as it stands now, for which there are connections. */
  readonly listConnectionServers: () => readonly ConnectionServer[];
  readonly machineClients: Pick<MachineClients, 'list'>;
  /** Undefined without an operators' page. */
  readonly noteFailure: NoteLoginFailure | undefined;
}

export interface AuthorizationEndpoints {
  readonly endpoints: readonly Endpoint[];
  /** To be told of each token that is refused with 401, before its bearer is. Undefined where that changes nothing. Never rejects. */
  readonly noteRefusedToken: ((token: string) => Promise<void>) | undefined;
  /** Looks from now on whether documents of clients can be fetched. */
  start(): void;
  close(): void;
}

/** The authorization server that clients see: its endpoints, and the documents that lead to it. */
export function createAuthorizationEndpoints(
  config: Config,
  parts: AuthorizationParts,
): AuthorizationEndpoints {
  const { store, loginSeal, fetch, clock, log, metadata } = parts;
  const { oauth } = config;
  const { baseUrl } = config.server;
  const { allowedHosts } = oauth.clientIdMetadata;
  const takesAssertions = oauth.mode === 'broker' && oauth.idJag.isEnabled;
  const network = parts.outbound.openPublicNetwork();
  const clientDocuments = createClientDocuments(parts, network, {
    allowedHosts,
    redirectUris: selectRedirectUriRules(oauth, baseUrl),
    acceptsKeys: takesAssertions,
  });
  const documentOffer = parts.outbound.isPublic
    ? createDocumentOffer(parts, network, allowedHosts)
    : createUncheckedOffer(allowedHosts);
  const handlers = createOAuth(config, {
    store,
    seal: loginSeal && warnOfForeignSecrets(loginSeal, { clock, log }),
    fetch,
    clock,
    clientDocuments,
    providerEndpoints: metadata && createProviderEndpoints(oauth.endpoints, metadata),
    inspectToken: parts.inspectToken,
    verifyToken: parts.verifyToken,
    getPublicTools: parts.getPublicTools,
    serverUrls: parts.serverUrls,
    tracing: parts.tracing,
    broker: parts.broker,
    callApprovals: parts.callApprovals,
    connections: parts.connections,
    listConnectionServers: parts.listConnectionServers,
    audit: parts.audit,
    log,
  });
  const { noteRefusal } = handlers.logins;
  const observers = [
    ...(parts.audit ? [auditLogins(parts.audit)] : []),
    ...(parts.noteFailure ? [noteFailures(parts.noteFailure)] : []),
  ];
  const metadataDocuments = createServerMetadata(
    config,
    metadata,
    documentOffer.isOffered,
    () => parts.machineClients.list().length > 0,
  );

  /** One that names nobody is never given again: it need not be looked up. */
  async function noteRefusedToken(token: string): Promise<void> {
    if (parts.inspectToken(token).sub !== undefined) await noteRefusal?.(token);
  }

  return {
    endpoints: [
      ...observeLogins(createOAuthEndpoints(handlers, { popups: oauth.popups }), {
        observers,
        clock,
        log,
      }),
      ...createDiscoveryEndpoints(baseUrl, metadataDocuments, parts.namedPaths),
    ],
    noteRefusedToken: noteRefusal && noteRefusedToken,
    start: documentOffer.start,
    close: documentOffer.close,
  };
}
