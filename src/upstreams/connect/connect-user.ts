// §24.3: connecting itself, without a call that goes on: `<server>__connect`, and names that are known only afterwards.
import type { Context, RawResult } from '../../mcp/catalog/catalog.ts';
import type { ToFailedResult } from '../relay/failures.ts';
import type { RelayedRequest } from '../relay/server-request.ts';
import {
  ConnectionNeeded,
  CredentialError,
  type Upstream,
  type UpstreamCaller,
} from '../upstream.ts';
import type { Doors } from './doors.ts';
import { toLoginError } from './logins.ts';

export interface ConnectUser {
  /**
   * Resolves to undefined once the caller is connected, else to what the client gets.
   *
   * @throws GatewayError; in the stateless era what ends a call that asks.
   */
  connect(call: ConnectCall): Promise<RawResult | undefined>;
  /** The same, and then as whom: the result of the tool. */
  connectAndTell(call: ConnectCall): Promise<RawResult>;
}

export interface ConnectCall {
  readonly upstream: Upstream;
  readonly caller: UpstreamCaller;
  readonly method: RelayedRequest['method'];
  readonly context: Pick<Context, 'relay'>;
}

export function createConnectUser(doors: Doors, toFailedResult: ToFailedResult): ConnectUser {
  async function connect(call: ConnectCall): Promise<RawResult | undefined> {
    const { upstream, caller, context } = call;
    const access = await upstream.logins?.getAccess(caller);
    if (access === undefined || access.kind === 'active') return undefined;
    try {
      const needed = toLoginError(access);
      if (!(needed instanceof ConnectionNeeded)) throw needed;
      await doors.pass(needed, call, context, true);
      return undefined;
    } catch (thrown) {
      return toResult(call, thrown);
    }
  }

  const toResult = ({ upstream, caller, method, context }: ConnectCall, thrown: unknown) =>
    toFailedResult(upstream.config.name, method, thrown, {
      era: context.relay.era,
      capabilities: caller.capabilities,
    });

  return {
    connect,
    async connectAndTell(call) {
      const refused = await connect(call);
      if (refused !== undefined) return refused;
      const { upstream, caller } = call;
      const { name } = upstream.config;
      try {
        const info = await upstream.logins?.describe(caller);
        const account = info?.account === undefined ? name : `${name} as ${info.account}`;
        return {
          content: [
            { type: 'text', text: `Connected to ${account}. Its tools can be called now.` },
          ],
        };
      } catch (cause) {
        return toResult(
          call,
          new CredentialError('the store of this service does not answer', { cause }),
        );
      }
    },
  };
}
