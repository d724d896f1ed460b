// §22: panels about the servers behind the gateway: their tools, the cost of their lists, guards, and the tools that a given person
// sees. Everything is shown from the point of view of this process.
import { WARNED_TOKENS } from '../catalog/budget/list-costs.ts';
import type { previewAccess } from '../control/rules/create-rules.ts';
import type { RuleDecision } from '../control/rules/rules.ts';
import { fail } from '../errors/gateway-error.ts';
import type { AdminPanel } from '../http/endpoint/admin-panel.ts';
import {
  MAX_TEXT,
  readPageRequest,
  renderNextOf,
  renderTime,
} from '../http/endpoint/admin-requests.ts';
import { readEmail } from '../http/endpoint/message.ts';
import { createLockPanels } from '../lock/lock-approval.ts';
import type { JsonObject } from '../platform/json.ts';
import type { Runtime } from '../runtime/runtime.ts';
import type { GatewayUpstreams } from './create-upstreams.ts';

/** Includes the panels of the lock. `opened` is undefined without a configuration file. */
export const createServerPanels = (
  runtime: Runtime,
  opened: GatewayUpstreams | undefined,
  lockCommand: string,
): readonly AdminPanel[] => [
  {
    method: 'GET',
    path: '/servers',
    show: () => ({
      servers: (opened?.listServers() ?? []).map(({ since, ...facts }) => ({
        ...facts,
        since: renderTime(since),
      })),
    }),
  },
  {
    method: 'GET',
    path: '/guards',
    // In the order of the configuration file.
    show: () => ({
      guards: (opened?.catalogs.served.current.guards?.listGuards() ?? []).map(
        ({ check: _, ...facts }) => facts,
      ),
    }),
  },
  {
    method: 'GET',
    path: '/idle-patterns',
    show: () => ({ patterns: opened?.catalogs.patterns.findIdle() ?? [] }),
  },
  // §25.2: the cost of each path's list for a model.
  {
    method: 'GET',
    path: '/lists',
    show: async () => ({
      warnedTokens: WARNED_TOKENS,
      lists: (await opened?.catalogs.measureLists()) ?? [],
    }),
  },
  {
    method: 'GET',
    path: '/tools',
    show(query) {
      const server = query.get('server') ?? '';
      const { from, limit } = readPageRequest(query);
      const skip = from?.skip ?? 0;
      const found = opened?.catalogs.listServerTools(server, { skip, limit });
      if (found === undefined) return fail('server_not_found');
      const tools = found.tools.map((tool) => ({ ...tool, name: tool.name.slice(0, MAX_TEXT) }));
      return { server, ...found, tools, ...renderNextOf(found.total, skip + limit) };
    },
  },
  // Shows the tools that a given person sees.
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
  ...createLockPanels(runtime, opened?.lockApproval, lockCommand),
];

const NO_PREVIEW: Awaited<ReturnType<typeof previewAccess>> = {
  total: 0,
  seen: 0,
  tools: [],
  personal: [],
};

function renderDecision(decision: RuleDecision): JsonObject {
  if (decision.kind !== 'allowed') return { ...decision, kind: undefined, decision: decision.kind };
  const { rule, isByArgs, ask, askRule, isAskedByArgs } = decision;
  return {
    decision: isByArgs === true ? 'by_arguments' : 'allowed',
    rule,
    ...(ask && { ask, askRule, askByArguments: isAskedByArgs === true }),
  };
}

// §22.4: the person whose tools an operator asks about, named as in a token.

/** @throws GatewayError `bad_request` if nobody is named. */
function readPerson(query: URLSearchParams) {
  const sub = query.get('user') ?? '';
  const email = query.get('email') ?? '';
  const groups = query.getAll('group').filter((group) => group !== '');
  if (sub === '' && email === '' && groups.length === 0)
    fail('bad_request', { details: 'Name the user with user, email or group.' });
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
