// Logins as the gateway opens them: who may call, and what stands between a client and its token.

import { createServerUrls, type ServerUrls } from '../config/server-urls.ts';
import type { FoundPeople } from '../http/endpoint/admin-people.ts';
import type { OnRefusal } from '../http/endpoint/bearer.ts';
import { getOriginalToken } from '../http/endpoint/message.ts';
import { createClientOf } from '../mcp/calls/call.ts';
import { defineFeature } from '../mcp/feature.ts';
import type { ConnectionParts } from '../mcp/upstream/connections.ts';
import type { ServedFile } from '../mcp/upstream/served-file.ts';
import { createGrantPanels } from './admin/grant-panels.ts';
import { createLoginPanels } from './admin/login-panels.ts';
import { createSessionPanels } from './admin/session-panels.ts';
import { createProviderAccess, openOwnTokenAccess, type ProviderAccess } from './auth/auth.ts';
import type { KeySet } from './auth/key-set.ts';
import {
  createMachineClients,
  findIssuerOf,
  type MachineClients,
  type MachineClientsConfig,
} from './auth/machine-clients.ts';
import { type Broker, openBroker } from './broker/open-broker.ts';
import type { ListShownTools } from './consent/consent-page.ts';
import { type OwnTokens, openOwnTokens } from './grants/open-grants.ts';
import { createCheckTokenUser } from './identity/login-policy.ts';
import type { LoginFailures, NoteLoginFailure } from './login-failures.ts';
import { createLoginFailures, noteRefusals } from './login-failures.ts';
import { createAuthorizationEndpoints } from './oauth.ts';
import { listLoginObservers, observeLogins } from './observe-logins.ts';

/** Clients of the configuration file that log in as themselves. */
export const machineClients = defineFeature({
  name: 'machine clients',
  open(_runtime, { file }: { readonly file: MachineClientsConfig | undefined }) {
    const clients = createMachineClients(file?.clients);
    return {
      gives: { machineClients: clients, findIssuerOf },
      prepare: async (next: { readonly file: MachineClientsConfig }) => () =>
        clients.replace(next.file.clients ?? []),
    };
  },
});

/** Tokens of the gateway's own, and the grants that they stand for; undefined in proxy mode. */
export const ownTokens = defineFeature({
  name: 'own tokens',
  open(runtime) {
    const opened = openOwnTokens(runtime);
    return { gives: { ownTokens: opened }, ...(opened && { close: opened.close }) };
  },
});

/** Logins that failed, for operators; undefined where there are none. */
export const loginFailures = defineFeature({
  name: 'failed logins',
  open(runtime, { operated }: { readonly operated: object | undefined }) {
    const failures = operated && createLoginFailures(runtime);
    return {
      gives: {
        loginFailures: failures,
        noteFailure: failures?.note,
        onRefusal: failures && noteRefusals(failures.note),
      },
    };
  },
});

interface AccessNeeds {
  readonly servedFile: ServedFile;
  readonly machineClients: MachineClients;
  readonly ownTokens: OwnTokens | undefined;
  readonly operated: FoundPeople | undefined;
  readonly loginFailures: LoginFailures | undefined;
  readonly onRefusal: OnRefusal | undefined;
  /** In place of the provider's own. */
  readonly givenKeySet: KeySet | undefined;
}

/** The provider, and who is let in by which token. */
export const access = defineFeature({
  name: 'access',
  open(runtime, needs: AccessNeeds) {
    const { auth, oauth, server } = runtime.config;
    const { has } = needs.servedFile;
    const provider = auth.required ? auth.provider : oauth.provider;
    const serverUrls = createServerUrls(server.baseUrl, provider?.audience, has);
    const opened = createProviderAccess(runtime, has, {
      isServerAudience: serverUrls.isAudience,
      onRefusal: needs.onRefusal,
      ownTokens:
        needs.ownTokens &&
        openOwnTokenAccess(runtime, needs.ownTokens, needs.machineClients, createCheckTokenUser),
      keySet: needs.givenKeySet,
    });
    return {
      gives: { ...opened, serverUrls },
      ...(needs.operated &&
        needs.loginFailures &&
        opened.auth.describeKeySet && {
          panels: createLoginPanels(runtime, needs.loginFailures, {
            issuer: needs.operated.issuers.issuer,
            describe: opened.auth.describeKeySet,
          }),
        }),
      readiness: opened.auth.readiness,
      close: opened.auth.close,
    };
  },
});

interface BrokerNeeds extends ProviderAccess {
  readonly serverUrls: ServerUrls;
  readonly servedFile: ServedFile;
  readonly machineClients: MachineClients;
  readonly ownTokens: OwnTokens | undefined;
  readonly connections: ConnectionParts | undefined;
  readonly operated: FoundPeople | undefined;
}

/** Broker mode: grants and their renewal by logins at the provider; undefined in proxy mode. */
export const broker = defineFeature({
  name: 'broker',
  open(runtime, needs: BrokerNeeds) {
    const { admin, oauth } = runtime.config;
    const { ownTokens: tokens, connections, operated, servedFile } = needs;
    const opened =
      tokens &&
      openBroker(runtime, tokens, needs, needs.machineClients, {
        urls: needs.serverUrls,
        hasConnections: () => servedFile.listConnectionServers().length > 0,
        connections: connections?.connections,
        listNamedClaims: () => [
          ...(admin.groups.length > 0 ? ['groups'] : []),
          ...servedFile.listNamedClaims(),
        ],
      });
    return {
      gives: {
        broker: opened,
        getProviderToken: opened?.renewal.getProviderToken ?? getOriginalToken,
        findClientId: createClientOf(oauth.mode === 'broker' ? oauth.providerClient.id : undefined),
      },
      ...(operated && {
        panels: createGrantPanels(
          operated,
          opened && { ...opened.ends, grants: opened.ownTokens.grants },
        ),
      }),
      ...(opened && { close: opened.close }),
    };
  },
});

interface AuthorizationNeeds extends ProviderAccess {
  readonly servedFile: ServedFile;
  readonly broker: Broker | undefined;
  readonly getPublicTools: ListShownTools | undefined;
  readonly noteFailure: NoteLoginFailure | undefined;
}

/** The authorization server that clients see. */
export const authorization = defineFeature({
  name: 'authorization server',
  open(runtime, needs: AuthorizationNeeds) {
    const { endpoints, ownPages, noteRefusedToken, start, close } = createAuthorizationEndpoints(
      runtime,
      needs,
      needs.broker,
      needs.servedFile,
      needs.getPublicTools,
    );
    const observers = listLoginObservers(runtime.audit, needs.noteFailure);
    return {
      gives: { ownPages, noteRefusedToken },
      endpoints: observeLogins(runtime, endpoints, observers),
      start,
      close,
    };
  },
});

interface SessionNeeds {
  readonly operated: FoundPeople | undefined;
  endSession(id: string): Promise<boolean>;
}

/** What operators see and do of sessions. */
export const sessionPanels = defineFeature({
  name: 'sessions for operators',
  open: (runtime, { operated, endSession }: SessionNeeds) => ({
    gives: {},
    ...(operated && { panels: createSessionPanels(runtime, operated, endSession) }),
  }),
});
