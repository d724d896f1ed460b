// §26: guards see what goes through the gateway, and let it pass, change it or refuse it.

import type { UserContext } from '../../http/endpoint/message.ts';
import type { CancelSignal } from '../../platform/cancellation.ts';
import type { TraceContext } from '../../telemetry/tracing/tracing.ts';
import type { RequestId } from '../protocol/json-rpc.ts';
import type { ItemKind } from '../protocol/list-kinds.ts';

/** The points that a guard can look at, as `on` in the configuration file names it (§26.1). */
export const GUARD_POINTS = [
  'tools/list',
  'tools/call',
  'tools/result',
  'prompts/list',
  'prompts/get',
  'prompts/result',
  'resources/list',
  'resources/read',
  'resources/result',
  'resources/subscribe',
  'skills/list',
  'completion/complete',
  'completion/result',
  'instructions',
  'sampling',
  'sampling/result',
  'elicitation',
  'elicitation/result',
  'roots',
  'roots/result',
  'notifications',
  'approval',
] as const;

export type GuardPoint = (typeof GUARD_POINTS)[number];

/** The subject of a message: of a server, and as clients of `/mcp` see it. Guards are chosen by it. */
export interface GuardedItem {
  readonly kind: ItemKind | undefined;
  /** `''` where it is about a server as a whole. */
  readonly name: string;
  /** `''` for the built-in catalogue. */
  readonly server: string;
}

/** The caller. A guard is told who it is, never a token. */
export interface GuardCaller {
  readonly user: UserContext | undefined;
  readonly clientId: string | undefined;
  readonly view: string | undefined;
  /** JSON-RPC id of the request. */
  readonly requestId: RequestId | undefined;
  readonly trace: TraceContext;
}

/** All guards of a configuration. */
export interface Guards {
  /**
   * Those that look at this, in their order, as one; undefined where none does: then nothing is parsed, kept or waited for.
   * Costs no more than a look-up for the same object.
   */
  find(point: GuardPoint, item: GuardedItem): Guard | undefined;
  /** True if some guard looks at this point, whatever it is about. */
  looksAt(point: GuardPoint): boolean;
  /** In the order of the file. */
  listGuards(): readonly GuardFacts[];
}

/** Some guards as one. */
export interface Guard {
  /** Never rejects: a guard that fails refuses, or lets pass, as its `onError` says. */
  judge(message: GuardedMessage): Promise<GuardVerdict>;
}

export interface GuardedMessage {
  /** Params of a request, a result, or `{"error": …}`: a JSON value, as it would go on. It is not changed. */
  readonly value: unknown;
  /** Undefined for what concerns nobody in particular, such as lists that all callers share. */
  readonly caller: GuardCaller | undefined;
  /** Aborted when nobody waits for the verdict any more. */
  readonly signal?: CancelSignal | undefined;
  /** Says what is wrong with a value that a guard put in its place: then that guard has failed. */
  findProblem?(changed: unknown): string | undefined;
}

export type GuardVerdict = (
  | { readonly kind: 'passed' }
  | { readonly kind: 'changed'; readonly value: unknown }
  /** `by` names the guard; `message` is its word to the caller. */
  | { readonly kind: 'refused'; readonly by: string; readonly message: string }
) & {
  /** A guard could not say it, and its `onError` did: not to be remembered. */
  readonly hasFailed?: true;
};

/** For operators. */
export interface GuardFacts {
  readonly name: string;
  /** Its kind, in a few words without a secret: `http guard.example.com`, `built in: secrets`. */
  readonly kind: string;
  readonly on: readonly GuardPoint[];
  readonly onError: 'refuse' | 'pass';
  /** Since the configuration was loaded. */
  readonly counts: Readonly<Record<GuardOutcome, number>>;
  /** Why it failed last; undefined where it never did, or has answered since. */
  readonly problem: string | undefined;
  /** Asks it once, about nothing: why it cannot be asked; undefined where it answers. */
  check(): Promise<string | undefined>;
}

export type GuardOutcome = 'passed' | 'changed' | 'refused' | 'failed';
