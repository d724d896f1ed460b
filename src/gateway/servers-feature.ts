// The servers behind the gateway, as it opens them.

import { WARNED_TOKENS } from '../catalog/budget/list-costs.ts';
import { listGuardServers } from '../catalog/plan.ts';
import { describeNamed } from '../control/rules/named-facts.ts';
import type { AccessPreview } from '../control/rules/preview-access.ts';
import { fail } from '../errors/gateway-error.ts';
import type { AdminPanel } from '../http/endpoint/admin-panel.ts';
import {
  MAX_TEXT,
  readPageRequest,
  renderNextOf,
  renderTime,
} from '../http/endpoint/admin-requests.ts';
import { readEmail, type UserContext } from '../http/endpoint/message.ts';
import { createLockPanels } from '../lock/lock-panels.ts';
import { joinPolicies } from '../mcp/calls/policy.ts';
import type { RuleConfig, RuleDecision } from '../mcp/calls/rules.ts';
import { defineFeature } from '../mcp/feature.ts';
import type { ServedFile } from '../mcp/upstream/served-file.ts';
import type { JsonObject } from '../platform/json.ts';
import { readConnectionServer } from '../servers/transport/transports.ts';
import type { GatewayFile, Setup } from './configuration/gateway-file.ts';
import type { GatewayUpstreams, UpstreamPorts } from './create-upstreams.ts';

export const servers = defineFeature({
  name: 'servers',
  async open(
    runtime,
    needs: UpstreamPorts & {
      /** Undefined without a configuration file: the gateway serves its own catalogue alone. */
      readonly setup: Setup | undefined;
      readonly servedFile: OpenServedFile;
      readonly lockCommand: string;
      readonly operated: object | undefined;
    },
  ) {
    const { setup, ownCatalog, lockCommand } = needs;
    const opened = setup && (await (await loadUpstreams()).openUpstreams(runtime, setup, needs));
    const catalogs = opened?.catalogs ?? {
      all: ownCatalog,
      findNamed: () => undefined,
      policies: joinPolicies([]),
    };
    return {
      gives: {
        upstreams: opened,
        all: catalogs.all,
        findNamed: catalogs.findNamed,
        catalog: catalogs.all,
        hasPaths: opened !== undefined,
        judge: catalogs.policies.judge,
        getGuards: () => opened?.getGuards(),
        describeUser: (user: UserContext) => opened && describeNamed(user, opened.getNamedFacts()),
      },
      ...(needs.operated && {
        panels: [
          ...createServerPanels(opened),
          ...createLockPanels(runtime, opened?.lockApproval, lockCommand),
        ],
      }),
      ...(opened && {
        endpoints: opened.endpoints,
        readiness: { servers: opened.checkRequired },
        async prepare(next: Setup) {
          const commit = await opened.prepare(next);
          return async () => {
            await commit();
            needs.servedFile.replace(next.file);
          };
        },
        close: opened.close,
      }),
    };
  },
});

/** Loaded where there is a configuration file: a quarter of all code. */
const loadUpstreams = () => import('./create-upstreams.ts');

// §22: the servers behind the gateway: their tools, what their lists cost, guards, and what somebody sees of them. All of it is
// what this process knows.

/** `opened` is undefined without a configuration file. */
const createServerPanels = (opened: GatewayUpstreams | undefined): readonly AdminPanel[] => [
  {
    method: 'GET',
    path: '/servers',
    show: () => ({
      servers: (opened?.listServers() ?? []).map(({ since, ...facts }) => ({
        ...facts,
        since: since === undefined ? undefined : renderTime(since),
      })),
    }),
  },
  {
    method: 'GET',
    path: '/guards',
    // In the order of the file.
    show: () => ({
      guards: (opened?.getGuards()?.listGuards() ?? []).map(({ check: _, ...facts }) => facts),
    }),
  },
  {
    method: 'GET',
    path: '/idle-patterns',
    show: () => ({ patterns: opened?.findIdlePatterns() ?? [] }),
  },
  // §25.2: what the list of each path costs a model.
  {
    method: 'GET',
    path: '/lists',
    show: async () => ({
      warnedTokens: WARNED_TOKENS,
      lists: (await opened?.measureLists()) ?? [],
    }),
  },
  {
    method: 'GET',
    path: '/tools',
    show(query) {
      const server = query.get('server') ?? '';
      const { from, limit } = readPageRequest(query);
      const skip = from?.skip ?? 0;
      const found = opened?.listServerTools(server, { skip, limit });
      if (found === undefined) return fail('server_not_found');
      const tools = found.tools.map((tool) => ({ ...tool, name: tool.name.slice(0, MAX_TEXT) }));
      return { server, ...found, tools, ...renderNextOf(found.total, skip + limit) };
    },
  },
  // What somebody sees.
  {
    method: 'GET',
    path: '/rules',
    async show(query, operator) {
      const caller = readPerson(query);
      const { from, limit } = readPageRequest(query);
      const skip = from?.skip ?? 0;
      const found = (await opened?.previewAccess({ caller, skip, limit }, operator)) ?? NO_PREVIEW;
      const tools = found.tools.map(({ decision, ...tool }) => ({
        ...tool,
        ...renderDecision(decision),
      }));
      return { ...found, tools, ...renderNextOf(found.total, skip + limit) };
    },
  },
];

const NO_PREVIEW: AccessPreview = { total: 0, seen: 0, tools: [], personal: [] };

function renderDecision(decision: RuleDecision): JsonObject {
  if (decision.kind !== 'allowed') return { ...decision, kind: undefined, decision: decision.kind };
  const { rule, isByArgs, ask, askRule, isAskedByArgs } = decision;
  return {
    decision: isByArgs === true ? 'by_arguments' : 'allowed',
    rule,
    ...(ask && { ask, askRule, askByArguments: isAskedByArgs === true }),
  };
}

// §22.4: the person whose tools an operator asks about, as a token would name them.

/** @throws GatewayError `bad_request` where nobody is named. */
function readPerson(query: URLSearchParams) {
  const sub = query.get('user') ?? '';
  const email = query.get('email') ?? '';
  const groups = query.getAll('group').filter((group) => group !== '');
  if (sub === '' && email === '' && groups.length === 0) {
    fail('bad_request', { details: 'Say who it is: user, email or group.' });
  }
  const claims = {
    ...(sub !== '' && { sub }),
    ...(email !== '' && { email }),
    ...(groups.length > 0 && { groups }),
  };
  const user = {
    sub,
    claims,
    token: '',
    ...readEmail(claims),
    ...(groups.length > 0 && { groups }),
  };
  return { user, clientId: query.get('client') || undefined };
}

// The configuration file that is served now.

interface OpenServedFile extends ServedFile {
  /** Called once the servers are those of the file. */
  replace(file: GatewayFile): void;
}

/** `file` is undefined where there is none: then there are no servers and no rules. */
export function createServedFile(file: GatewayFile | undefined): OpenServedFile {
  let served = file === undefined ? NOTHING : readFile(file);

  return {
    has: (name) => served.titles.has(name),
    getTitle: (name) => served.titles.get(name),
    listConnectionServers: () => served.connectionServers,
    listNamedClaims: () => served.namedClaims,
    replace(next) {
      served = readFile(next);
    },
  };
}

const NOTHING: ReturnType<typeof readFile> = {
  titles: new Map(),
  connectionServers: [],
  namedClaims: [],
};

const readFile = (file: GatewayFile) => {
  const guards = listGuardServers(file);
  return {
    /** By the names of `/mcp/<name>`; undefined for a server, which has none. */
    titles: new Map<string, string | undefined>([
      ...file.servers
        .filter(({ name }) => !guards.includes(name))
        .map(({ name }) => [name, undefined] as const),
      ...(file.views ?? []).map(({ name, title }) => [name, title] as const),
    ]),
    connectionServers: file.servers
      .map(readConnectionServer)
      .filter((server) => server !== undefined),
    namedClaims: file.rules.flatMap(({ who }) => listClaims(who)),
  };
};

const listClaims = (who: RuleConfig['who']): readonly string[] =>
  who === 'everyone'
    ? []
    : [...Object.keys(who.claims ?? {}), ...(who.groups === undefined ? [] : ['groups'])];
