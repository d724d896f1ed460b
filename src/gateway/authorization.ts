// A part of the composition root: the authorization server that clients see.
import type { Audit } from '../core/audit/audit.ts';
import type { Clock } from '../core/clock.ts';
import type { Config } from '../core/config/config.ts';
import type { Endpoint } from '../core/endpoint.ts';
import type { Fetch } from '../core/fetch-with-limits.ts';
import type { Log } from '../core/log.ts';
import type { GatewayRequest } from '../core/message.ts';
import type { OpenTunnel } from '../core/outbound/outbound-network.ts';
import { createProviderEndpoints } from '../core/provider/provider-endpoints.ts';
import type { ProviderMetadata } from '../core/provider/provider-metadata.ts';
import { warnOfForeignSecrets } from '../core/seal/login-seal.ts';
import type { Seal } from '../core/seal/seal.ts';
import type { ServerUrls } from '../core/server-urls.ts';
import type { Store } from '../core/store/store.ts';
import type { Tracing } from '../core/tracing/tracing.ts';
import type { NoteLoginFailure } from '../features/admin/login-failures.ts';
import type { Auth } from '../features/auth/auth.ts';
import { createDiscoveryEndpoints } from '../features/discovery/endpoints.ts';
import { createServerMetadata } from '../features/discovery/server-metadata.ts';
import { auditEndpoints } from '../features/oauth/audit-endpoints.ts';
import { createClientDocuments } from '../features/oauth/client-id-metadata/client-documents.ts';
import {
  createDocumentOffer,
  createUncheckedOffer,
} from '../features/oauth/client-id-metadata/document-offer.ts';
import { createPublicNetwork, type Network } from '../features/oauth/client-id-metadata/network.ts';
import { createOAuthEndpoints } from '../features/oauth/endpoints.ts';
import { noteFailures } from '../features/oauth/note-failures.ts';
import { createOAuth } from '../features/oauth/oauth.ts';
import { selectRedirectUriRules } from '../features/oauth/redirect-uri/redirect-uri.ts';
import type { GetPublicTools } from '../features/site/public-tools.ts';

export interface AuthorizationParts {
  readonly store: Store;
  readonly fetch: Fetch;
  readonly clock: Clock;
  readonly log: Log;
  /** Undefined where nothing is sealed: in proxy mode without a consent page. */
  readonly loginSeal: Seal | undefined;
  /** Undefined without an issuer. */
  readonly metadata: ProviderMetadata | undefined;
  readonly inspectToken: Auth['inspectToken'];
  readonly serverUrls: ServerUrls;
  readonly isServer: (name: string) => boolean;
  /** In place of the public network. */
  readonly network: Network | undefined;
  readonly needsClients: () => boolean;
  /** Undefined where strangers see none. */
  readonly getPublicTools: GetPublicTools | undefined;
  readonly tunnel: OpenTunnel;
  /** Undefined without `AUDIT_LOG`. */
  readonly audit: Audit | undefined;
  /** Undefined where nothing is traced. */
  readonly tracing: Tracing | undefined;
  readonly getTraceId: (request: GatewayRequest) => string | undefined;
  /** Undefined without an operators' page. */
  readonly noteFailure: NoteLoginFailure | undefined;
}

export interface AuthorizationEndpoints {
  readonly endpoints: readonly Endpoint[];
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
  const network = parts.network ?? createPublicNetwork({ clock, tunnel: parts.tunnel });
  const clientDocuments = createClientDocuments({
    allowedHosts,
    redirectUris: selectRedirectUriRules(oauth, baseUrl),
    clock,
    log,
    network,
  });
  const documentOffer =
    parts.network === undefined
      ? createDocumentOffer({ allowedHosts, network, clock, log })
      : createUncheckedOffer(allowedHosts);
  const handlers = createOAuth(config, {
    store,
    seal: loginSeal && warnOfForeignSecrets(loginSeal, { clock, log }),
    fetch,
    clock,
    clientDocuments,
    providerEndpoints: metadata && createProviderEndpoints(oauth.endpoints, metadata),
    inspectToken: parts.inspectToken,
    needsClients: parts.needsClients,
    getPublicTools: parts.getPublicTools,
    serverUrls: parts.serverUrls,
    tracing: parts.tracing,
    log,
  });
  const ownEndpoints = createOAuthEndpoints(handlers, { popups: oauth.popups });
  const oauthEndpoints =
    parts.noteFailure === undefined ? ownEndpoints : noteFailures(ownEndpoints, parts.noteFailure);
  const metadataDocuments = createServerMetadata(config, metadata, documentOffer.isOffered);
  return {
    endpoints: [
      ...(parts.audit === undefined
        ? oauthEndpoints
        : auditEndpoints(oauthEndpoints, { ...parts, audit: parts.audit })),
      ...createDiscoveryEndpoints(baseUrl, metadataDocuments, parts.isServer),
    ],
    start: documentOffer.start,
    close: documentOffer.close,
  };
}
