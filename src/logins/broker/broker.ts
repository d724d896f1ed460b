// OAUTH_MODE=broker: an authorization server of its own before the provider's. A login comes to a grant, by which its client gets tokens
// of the gateway's own (§5.11).

import type { OwnPages } from '../../http/endpoint/own-pages.ts';
import { createAccountEndpoints } from '../account/account.ts';
import { createBrowserSessions } from '../account/browser-sessions.ts';
import { createBeginLogin, createFinishPageLogin } from '../account/page-logins.ts';
import { createClientAuthentication } from '../client-authentication/authenticate-client.ts';
import type { ClientDocuments } from '../client-id-metadata/client-documents.ts';
import type { ModeAtEndpoints } from '../endpoints.ts';
import { createVerifyAssertion } from '../id-jag/assertion.ts';
import {
  type AssertingClient,
  createFindByDocument,
  createGiveByAssertion,
} from '../id-jag/jwt-bearer.ts';
import type { Parties } from '../parties.ts';
import { JWT_BEARER } from '../request/login-facts.ts';
import { createBrokerRedirect, createBrokerRequestReader } from './authorize.ts';
import { createCallback } from './callback.ts';
import { createClientCredentials, createFindMachineLogin } from './client-credentials.ts';
import { createCodes, createRedeemCode } from './codes.ts';
import { createTokenIssue } from './issue-grant.ts';
import type { Broker } from './open-broker.ts';
import { createProviderLogout } from './provider-logout.ts';
import { createBrokerRevoke, createBrokerToken, type GiveTokens } from './token.ts';

export function createBrokerMode(
  broker: Broker,
  parties: Parties,
  clientDocuments: Pick<ClientDocuments, 'isClientDocumentId' | 'findKeyed'>,
): ModeAtEndpoints {
  const { runtime } = broker;
  const { clients, browsers } = parties;
  const { grants } = broker.ownTokens;
  const codes = createCodes(runtime);
  const issue = createTokenIssue(runtime, broker);
  const sessions = createBrowserSessions(runtime, broker.ends.logouts);
  const ownPages: OwnPages = {
    sessions,
    browsers,
    beginLogin: createBeginLogin(runtime, broker, browsers),
    listClients: async (user) => (await grants.listOfUser(user)).map(({ client }) => client),
  };

  const { ofConfigured, ofAsserting } = createAuthentications(broker, clientDocuments);
  const redeemCode = createRedeemCode(runtime, broker, clients, codes, issue);
  const grantTypes = new Map<string, GiveTokens>([
    ['authorization_code', ({ parameters }) => redeemCode(parameters)],
    ['client_credentials', createClientCredentials(runtime, broker, ofConfigured, issue)],
  ]);
  if (ofAsserting && broker.assertionIssuers) {
    const { oauth, baseUrl, clock } = runtime;
    const { clockToleranceSeconds } = oauth.tokens;
    const verifyAssertion = createVerifyAssertion(clock, broker.assertionIssuers, {
      baseUrl,
      clockToleranceSeconds,
    });
    const giveByAssertion = createGiveByAssertion(
      runtime,
      broker,
      ofAsserting,
      verifyAssertion,
      issue,
    );
    grantTypes.set(JWT_BEARER, giveByAssertion);
  }
  const { token, ...logins } = createBrokerToken(
    runtime,
    broker,
    clients,
    issue.answer,
    grantTypes,
  );

  return {
    issuer: runtime.baseUrl,
    readRequest: createBrokerRequestReader(runtime, parties),
    redirectToProvider: createBrokerRedirect(runtime, broker),
    callback: createCallback(
      runtime,
      broker,
      parties,
      codes,
      createFinishPageLogin(runtime, sessions),
    ),
    token,
    logins,
    findMachineLogin: createFindMachineLogin(ofConfigured, ofAsserting),
    revoke: createBrokerRevoke(broker, clients, ofAsserting ?? ofConfigured),
    ownPages,
    ownEndpoints: [
      ...createAccountEndpoints(runtime, broker, sessions, ownPages),
      createProviderLogout(runtime, broker),
    ],
  };
}

/** `ofAsserting` is for clients that bring assertions, which may be known by their documents alone; undefined where none is taken. */
function createAuthentications(
  { runtime, machineClients, clientKeySets, assertionIssuers }: Broker,
  clientDocuments: Parameters<typeof createBrokerMode>[2],
) {
  const { find: findClient } = machineClients;
  const { clockToleranceSeconds } = runtime.oauth.tokens;
  const rules = { issuer: runtime.baseUrl, clockToleranceSeconds };
  return {
    ofConfigured: createClientAuthentication(runtime, rules, clientKeySets, { findClient }),
    ofAsserting:
      assertionIssuers &&
      createClientAuthentication<AssertingClient>(runtime, rules, clientKeySets, {
        findClient,
        findByDocument: createFindByDocument(clientDocuments),
      }),
  };
}
