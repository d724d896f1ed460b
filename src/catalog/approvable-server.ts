// §22.4, §22.6: a server, as operators approve it.

import {
  type ApprovableServer,
  LOCKED_ITEMS,
  type LockedList,
} from '../mcp/catalog/approved-items.ts';
import { LIST_KINDS } from '../mcp/protocol/list-kinds.ts';
import { GATEWAY_CALLER } from '../mcp/upstream/upstream.ts';
import type { UpstreamConfig } from '../mcp/upstream/upstream-config.ts';
import { findItemProblem } from './check-item.ts';
import { readInstructions, readServer } from './fetch-list.ts';
import { selectTools } from './prepare-list.ts';
import type { Server } from './server.ts';

export function toApprovable(config: UpstreamConfig, server: Server): ApprovableServer {
  const selected = selectTools(config.tools);
  const { lists, upstream, usage } = server;
  const peekList = (list: LockedList) => lists.peek(list, GATEWAY_CALLER) ?? NO_ITEMS;
  return {
    name: config.name,
    isPersonal: server.isPersonal,
    peek: () => ({
      instructions: readInstructions(lists.peekDescription(GATEWAY_CALLER)?.instructions),
      prompts: peekList('prompts'),
      skills: peekList('skills'),
      tools: peekList('tools'),
    }),
    isUsable: (list, item) =>
      findItemProblem(list, item) === undefined &&
      (list !== 'tools' || selected.has(String(item.name))),
    peekApproved: lists.peekApproved,
    async read(signal) {
      const content = await usage.run(() => readServer(upstream, GATEWAY_CALLER, signal));
      for (const { list } of Object.values(LOCKED_ITEMS)) {
        const served = lists.peek(list, GATEWAY_CALLER);
        if (served === undefined || served.fingerprint === content[list].fingerprint) continue;
        lists.invalidate(LIST_KINDS[list].list, GATEWAY_CALLER);
        await lists.load(list, GATEWAY_CALLER, 'forCall');
      }
      return content;
    },
  };
}

const NO_ITEMS = { items: [] };
