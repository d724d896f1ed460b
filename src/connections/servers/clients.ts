// §24.2: who the gateway is at an authorization server: by configuration, by its client document, or by registration.

import {
  chooseSecretMethod,
  type OAuthClient,
} from '../../http/oauth-client/client-authentication.ts';
import type { ConnectionAuth, ConnectionServer } from '../../mcp/upstream/connection.ts';
import { ConnectionProblem } from '../../mcp/upstream/connections.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import type { ClientSource, ConnectionRecord } from '../connection-record.ts';
import type { KeptConnections } from '../kept-connections.ts';
import type { AuthorizationServer } from './authorization-server.ts';
import {
  adviseToCreate,
  buildOwnRedirectUri,
  createClientDocument,
  findDocumentUrl,
  isRedirectAmbiguous,
} from './client-document.ts';
import type { KnownIssuers } from './known-issuers.ts';
import type { Outbound } from './outbound.ts';
import { createRegistrations, type Registrations } from './registrations.ts';

export interface ChosenClient extends Omit<OAuthClient, 'audience'> {
  readonly source: ClientSource;
}

export interface OAuthClients extends Pick<Registrations, 'replaceForgotten'> {
  /** For a new login; registers where it must. @throws ConnectionProblem, StoreUnavailable */
  findForLogin(server: ConnectionServer, at: AuthorizationServer): Promise<ChosenClient>;
  /** The one that a connection's tokens were made for. */
  findForRecord(server: ConnectionServer, record: ClientOfRecord): OAuthClient;
  /** The answer of its URL; undefined where BASE_URL is no public https. */
  createDocument(): Readonly<Record<string, unknown>> | undefined;
}

type ClientOfRecord = Pick<ConnectionRecord, 'client' | 'issuer'>;

export function createOAuthClients(
  runtime: Runtime,
  kept: Pick<KeptConnections, 'seal' | 'changes' | 'listServers'>,
  outbound: Outbound,
  issuers: Pick<KnownIssuers, 'listOthers'>,
): OAuthClients {
  const { baseUrl, displayName } = runtime.config.server;
  const documentUrl = findDocumentUrl(baseUrl);
  const { register, replaceForgotten } = createRegistrations(runtime, kept, outbound, issuers);

  return {
    replaceForgotten,
    createDocument: () => createClientDocument(baseUrl, displayName, kept.listServers()),
    async findForLogin(server, at) {
      const { clientId, clientSecret, clientAuth } = server.auth;
      if (isRedirectAmbiguous(server, at)) {
        throw new ConnectionProblem(
          'operator',
          `${server.name}: with "redirectUri": "common", its authorization server ${at.issuer} must say in its responses who it is (RFC 9207), and does not promise to. Add the redirect URI ${buildOwnRedirectUri(baseUrl, server)} to the client there, and remove "redirectUri".`,
        );
      }
      const source = chooseClientSource(server.auth, at, documentUrl !== undefined);
      switch (source) {
        case 'configured': {
          const method =
            clientSecret === undefined
              ? 'none'
              : chooseSecretMethod(at.authMethods, at.isIssuerKnown);
          return { id: clientId ?? '', secret: clientSecret, method: clientAuth ?? method, source };
        }
        case 'document':
          return { id: documentUrl ?? '', secret: undefined, method: 'none', source };
        case 'registered': {
          const { id, secret, method } = await register(server, at);
          return { id, secret, method, source };
        }
        case undefined:
          throw new ConnectionProblem(
            'operator',
            `${server.name}: its authorization server ${at.issuer} registers no clients by itself. ${adviseToCreate(baseUrl, server)}`,
          );
      }
    },
    findForRecord({ auth }, { issuer, client: { id, secret, source, method } }) {
      const audience = auth.assertionAudience === 'endpoint' ? undefined : issuer;
      if (source !== 'configured') return { id, secret, method, audience };
      const { clientId = id, clientSecret, clientAuth = method } = auth;
      return { id: clientId, secret: clientSecret, method: clientAuth, audience };
    },
  };
}

/** Undefined where an operator has to make a client there. */
export function chooseClientSource(
  { clientId, clientAuth }: ConnectionAuth,
  { takesClientDocuments, sendsIssuer, registrationUrl }: AuthorizationServer,
  hasDocument: boolean,
): ClientSource | undefined {
  if (clientId !== undefined) return 'configured';
  // It says that the gateway has neither secret nor key. And it is the same everywhere, with the redirect URIs of all servers: `iss`
  // alone tells authorization servers apart that know the gateway by it.
  const isPublic = clientAuth === undefined || clientAuth === 'none';
  if (takesClientDocuments && sendsIssuer && hasDocument && isPublic) return 'document';
  return registrationUrl === undefined ? undefined : 'registered';
}
