// A catalogue that passes every call on: tools and prompts are called `server__name`, resources `server+uri`.
import type { Catalog, Context, RawResult } from '../../../src/features/mcp/catalog/catalog.ts';
import type {
  RelayCall,
  RelayedRequest,
} from '../../../src/features/upstreams/relay/relayed-call.ts';
import type { Upstream } from '../../../src/features/upstreams/upstream.ts';

type ByName = Readonly<Record<string, Upstream>>;

export function createRelayCatalog(upstreams: ByName, relayCall: RelayCall): Catalog {
  function relay(
    full: string,
    separator: string,
    context: Context,
    toRequest: (name: string) => RelayedRequest,
  ): Promise<RawResult> {
    const [server = '', name = ''] = full.split(separator);
    const upstream = upstreams[server];
    if (upstream === undefined) throw new Error(`There is no server ${server}.`);
    const caller = {
      user: context.user,
      clientId: undefined,
      sessionId: context.session?.sessionId,
      capabilities: context.client,
    };
    return relayCall(upstream, caller, { ...toRequest(name), name }, context);
  }

  return {
    offers: {
      tools: true,
      prompts: true,
      resources: true,
      subscriptions: false,
      completions: true,
      logging: true,
    },
    mirrorHeaders: [],
    listTools: async () => ({ items: [] }),
    callTool: (full, args, context) =>
      relay(full, '__', context, (name) => ({
        method: 'tools/call',
        params: { name, arguments: args },
      })),
    mirroredParams: () => [],
    listPrompts: async () => ({ items: [] }),
    getPrompt: (full, args, context) =>
      relay(full, '__', context, (name) => ({
        method: 'prompts/get',
        params: { name, arguments: args },
      })),
    listResources: async () => ({ items: [] }),
    listResourceTemplates: async () => ({ items: [] }),
    readResource: (full, context) =>
      relay(full, '+', context, (uri) => ({ method: 'resources/read', params: { uri } })),
    complete: async () => ({ values: [] }),
    canWatch: () => false,
    watchResources: () => () => {},
  };
}
