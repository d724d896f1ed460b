// A gateway with a view that is searched, and its three tools as a model calls them.
import type { JsonObject } from '../../../src/platform/json.ts';
import type { TestResponse } from '../gateway/gateway.ts';
import {
  type CatalogGateway,
  type CatalogGatewayOptions,
  startForTest,
} from './catalog-gateway.ts';

export interface FoundTools {
  readonly tools: readonly JsonObject[];
  readonly hint?: string;
}

export interface SearchedView extends CatalogGateway {
  /** tools/call in a session. */
  callTool(name: string, args?: unknown, token?: string): Promise<TestResponse>;
  search(args: JsonObject, token?: string): Promise<FoundTools>;
  describe(names: readonly string[], token?: string): Promise<FoundTools>;
}

/** `view` are members beside `search`, which is true. */
export async function startSearchedView(
  { file, ...options }: CatalogGatewayOptions,
  view: object = {},
): Promise<SearchedView> {
  const gateway = await startForTest({
    ...options,
    file: { ...file, views: { research: { search: true, ...view } } },
    view: 'research',
  });

  async function callTool(name: string, args: unknown = {}, token?: string) {
    const session = await gateway.open(token === undefined ? {} : { token });
    const params = { name, arguments: args };
    return gateway.rpc(
      { jsonrpc: '2.0', id: 1, method: 'tools/call', params },
      { session, ...(token !== undefined && { token }) },
    );
  }

  const read = async (name: string, args: JsonObject, token?: string): Promise<FoundTools> => {
    const { json, text } = await callTool(name, args, token);
    const written: unknown = json.result?.content[0].text;
    if (typeof written !== 'string') throw new Error(`${name} answered ${text}`);
    return JSON.parse(written);
  };

  return {
    ...gateway,
    callTool,
    search: (args, token) => read('search_tools', args, token),
    describe: (names, token) => read('describe_tools', { names }, token),
  };
}

export const namesOf = ({ tools }: FoundTools): readonly unknown[] => tools.map(({ name }) => name);
