// The features of this folder: who may call, and how a client gets its token.
import { createServerUrls } from '../config/server-urls.ts';
import type { FoundPeople } from '../http/endpoint/admin-people.ts';
import { getOriginalToken } from '../http/endpoint/message.ts';
import { createClientOf } from '../mcp/calls/call.ts';
import { defineFeature, type Given } from '../mcp/feature.ts';
import type { ConnectionPorts } from '../mcp/upstream/connections.ts';
import type { ServedFile } from '../mcp/upstream/upstream-config.ts';
import { createCallPanels } from './admin/call-panels.ts';
import { createGrantPanels, createSessionPanels } from './admin/grant-panels.ts';
import { createLoginPanels } from './admin/login-panels.ts';
import { createProviderAccess, openOwnTokenAccess } from './auth/auth.ts';
import type { KeySet } from './auth/key-set.ts';
import {
  createMachineClients,
  findIssuerOf,
  type MachineClientsConfig,
} from './auth/machine-clients.ts';
import { openBroker } from './broker/open-broker.ts';
import type { ListShownTools } from './consent/consent.ts';
import { openOwnTokens } from './grants/grants.ts';
import { createAuthorizationEndpoints } from './oauth.ts';
import { createLoginFailures, listLoginObservers, observeLogins } from './request/login-facts.ts';

/** The rest of the gateway, as logins know it. */
interface Surroundings {
  readonly servedFile: ServedFile;
  /** Undefined without operators. */
  readonly operated: FoundPeople | undefined;
}

/** Clients of the configuration file that authenticate as themselves. */
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

/** The gateway's own tokens, and their grants; undefined in proxy mode. */
export const ownTokens = defineFeature({
  name: 'own tokens',
  open(runtime) {
    const opened = openOwnTokens(runtime);
    return { gives: { ownTokens: opened }, ...(opened && { close: opened.close }) };
  },
});

/** Failed logins, for operators; undefined if there are none. */
export const loginFailures = defineFeature({
  name: 'failed logins',
  open(runtime, { operated }: Pick<Surroundings, 'operated'>) {
    const failures = operated && createLoginFailures(runtime);
    return { gives: { loginFailures: failures } };
  },
});

/** The provider, and the check of bearer tokens. */
export const access = defineFeature({
  name: 'access',
  open(
    runtime,
    needs: Surroundings &
      Given<typeof machineClients> &
      Given<typeof ownTokens> &
      Given<typeof loginFailures> & {
        /** Replaces the provider's own. */
        readonly givenKeySet: KeySet | undefined;
      },
  ) {
    const { auth, oauth, server } = runtime.config;
    const { has } = needs.servedFile;
    const provider = auth.required ? auth.provider : oauth.provider;
    const serverUrls = createServerUrls(server.baseUrl, provider?.audience, has);
    const opened = createProviderAccess(runtime, has, {
      isServerAudience: serverUrls.isAudience,
      onRefusal: needs.loginFailures?.noteRefusal,
      ownTokens:
        needs.ownTokens && openOwnTokenAccess(runtime, needs.ownTokens, needs.machineClients),
      keySet: needs.givenKeySet,
    });
    return {
      gives: { ...opened, serverUrls },
      ...(needs.operated &&
        needs.loginFailures &&
        opened.auth.describeKeySet && {
          panels: createLoginPanels(
            runtime,
            needs.loginFailures,
            needs.operated.issuers.issuer,
            opened.auth.describeKeySet,
          ),
        }),
      readiness: opened.auth.readiness,
      close: opened.auth.close,
    };
  },
});

/** Broker mode: logins at the provider, grants and their renewal; undefined in proxy mode. */
export const broker = defineFeature({
  name: 'broker',
  open(
    runtime,
    needs: Surroundings &
      Given<typeof machineClients> &
      Given<typeof ownTokens> &
      Given<typeof access> & { readonly connections: ConnectionPorts | undefined },
  ) {
    const { admin, oauth } = runtime.config;
    const { ownTokens: tokens, connections, operated, servedFile } = needs;
    const opened =
      tokens &&
      openBroker(runtime, tokens, needs, {
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
      ...(operated && { panels: createGrantPanels(operated, opened) }),
      ...(opened && { close: opened.close }),
    };
  },
});

export const authorization = defineFeature({
  name: 'authorization server',
  open(
    runtime,
    needs: Pick<Surroundings, 'servedFile'> &
      Given<typeof loginFailures> &
      Given<typeof access> &
      Given<typeof broker> & { readonly getPublicTools: ListShownTools | undefined },
  ) {
    const { endpoints, ownPages, noteRefusedToken, start, close } = createAuthorizationEndpoints(
      runtime,
      needs,
    );
    const observers = listLoginObservers(runtime.audit, needs.loginFailures?.note);
    return {
      gives: { ownPages, noteRefusedToken },
      endpoints: observeLogins(runtime, endpoints, observers),
      start,
      close,
    };
  },
});

export const sessionPanels = defineFeature({
  name: 'sessions for operators',
  open: (
    runtime,
    {
      operated,
      endSession,
    }: Pick<Surroundings, 'operated'> & { endSession(id: string): Promise<boolean> },
  ) => ({
    gives: {},
    ...(operated && {
      panels: [
        ...createSessionPanels(runtime, operated, endSession),
        ...createCallPanels(runtime, operated),
      ],
    }),
  }),
});
