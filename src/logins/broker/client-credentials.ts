// RFC 6749 §4.4: a client of the configuration file gets a token for itself. There is no refresh token: it authenticates again.

import type { TokensConfig } from '../../config/groups/own-tokens.ts';
import { DEFAULT_SCOPES, parseScope } from '../../config/scope.ts';
import { fail } from '../../errors/gateway-error.ts';
import type { PendingReply, Reply } from '../../http/endpoint/message.ts';
import type { RequestParameters } from '../../http/endpoint/parameters.ts';
import type { Clock } from '../../platform/clock.ts';
import { hashSha256 } from '../../platform/ids.ts';
import { createSingleFlight } from '../../platform/single-flight.ts';
import { buildMachineGrantKey } from '../../store/keys.ts';
import type { KeyValue } from '../../store/store.ts';
import { type MachineClient, type MachineClients, toMachineUser } from '../auth/machine-clients.ts';
import type {
  ClientAuthentication,
  ClientRequest,
} from '../client-authentication/authenticate-client.ts';
import { createGrantId, type Grant, isGrantId, issueFirstPair, nameUser } from '../grants/grant.ts';
import type { Grants } from '../grants/grants.ts';
import type { OwnResources } from '../request/authorization-request.ts';
import { addFacts, type LogLogin } from '../request/login-facts.ts';
import type { WriteTokens } from './answer.ts';
import { isFresh } from './decide-refresh.ts';
import type { IssueGrant } from './issue-grant.ts';
import type { Logouts } from './logouts.ts';
import { readMachineResources } from './resources.ts';

export interface ClientCredentialsDeps {
  readonly config: OwnResources & Pick<TokensConfig, 'accessSeconds'>;
  readonly authentication: Pick<ClientAuthentication, 'authenticate'>;
  readonly machineClients: Pick<MachineClients, 'list'>;
  readonly store: Pick<KeyValue, 'get' | 'set'>;
  readonly grants: Pick<Grants, 'capExpiry' | 'read'>;
  readonly logouts: Pick<Logouts, 'getMark'>;
  readonly issueGrant: IssueGrant;
  readonly writeTokens: WriteTokens;
  readonly logLogin: LogLogin;
  readonly clock: Clock;
}

interface Asked {
  readonly client: MachineClient;
  readonly scopes: readonly string[];
  readonly resources: readonly string[];
}

export function createClientCredentials(deps: ClientCredentialsDeps) {
  const { config, authentication, store, grants, logouts, clock } = deps;
  const giving = createSingleFlight<string, Grant>();

  return async function giveToken(request: ClientRequest): Promise<PendingReply> {
    if (deps.machineClients.list().length === 0) fail('unsupported_grant_type');
    const { client, useUp } = await authentication.authenticate(request);
    const user = toMachineUser(client.id, config.baseUrl);
    return addFacts({ client: client.id, ...nameUser(user) }, async () => {
      const { parameters } = request;
      const asked = {
        client,
        scopes: readScopes(parameters, client),
        resources: readMachineResources(parameters, config, client),
      };
      return async function giveAndAnswer() {
        await useUp();
        return answer(await giving.run(hashAsked(asked), () => findOrIssue(asked)));
      };
    });
  };

  /** A client may ask before each call: while a token has most of its time left, it gets the same one. */
  async function findOrIssue(asked: Asked): Promise<Grant> {
    // What is ended from here on ends this, too.
    const logoutMark = await logouts.getMark();
    const key = buildMachineGrantKey(hashAsked(asked));
    const id = await store.get(key);
    const found = id !== undefined && isGrantId(id) ? await grants.read(id) : undefined;
    if (found && isFresh(found.grant.issued, clock.now())) return found.grant;
    const grant = grants.capExpiry(buildGrant(asked));
    const issued = await deps.issueGrant(grant, logoutMark);
    if (issued === undefined) return fail('invalid_grant', { details: ENDED_MEANWHILE });
    const seconds = Math.ceil((grant.issued.expiresAt - clock.now()) / 1000);
    await store.set(key, grant.id, Math.max(1, seconds));
    return issued;
  }

  function buildGrant({ client, scopes, resources }: Asked): Grant {
    const user = toMachineUser(client.id, config.baseUrl);
    const now = clock.now();
    return {
      id: createGrantId(),
      user,
      claims: { iss: user.issuer, sub: user.sub, client_id: client.id },
      provider: {},
      client: { id: client.id },
      clientMark: client.mark,
      scopes,
      resources,
      createdAt: now,
      renewedAt: now,
      issued: issueFirstPair({ scopes, resources }, now, config.accessSeconds),
    };
  }

  function answer(grant: Grant): Reply {
    const login = {
      clientId: grant.client.id,
      clientName: undefined,
      ...nameUser(grant.user),
      isRefresh: false,
    };
    const facts = { ...deps.logLogin(login), grantId: grant.id };
    return { ...deps.writeTokens(grant, clock.now()), facts };
  }
}

/** Of the mark, too: a client that was changed gets no token of what it was. */
const hashAsked = ({ client, scopes, resources }: Asked): string =>
  hashSha256(JSON.stringify([client.id, client.mark, [...scopes].sort(), [...resources].sort()]));

/** Official clients ask for what the metadata offers, which is about people: a client that has none of it is not refused for that. */
function readScopes(parameters: RequestParameters, { scopes }: MachineClient): readonly string[] {
  const asked = parseScope(parameters.get('scope')).filter(
    (one) => scopes.includes(one) || !ABOUT_USERS.has(one),
  );
  if (asked.some((one) => !scopes.includes(one))) {
    return fail('invalid_scope', {
      details: `The client may not have this scope. The configuration file gives it ${scopes.length === 0 ? 'no scopes' : scopes.join(' ')}.`,
    });
  }
  return asked.length === 0 ? scopes : scopes.filter((one) => asked.includes(one));
}

const ABOUT_USERS: ReadonlySet<string> = new Set(DEFAULT_SCOPES);

const ENDED_MEANWHILE = 'The logins of this client were ended meanwhile. Try again.';
