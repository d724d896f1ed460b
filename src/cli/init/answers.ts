import { clientId, providerSettings } from '../../config/groups/provider.ts';
import { storeSettings } from '../../config/groups/store.ts';
import type { Setting } from '../../config/setting.ts';
import { UsageError } from '../command-line/errors.ts';
import type { ProviderChoice } from './providers.ts';

/** Answers that `postern init` needs. */
export interface InitAnswers {
  readonly provider: ProviderChoice;
  /** Undefined where it is to be filled in later; so are the next two. */
  readonly issuer: string | undefined;
  readonly clientId: string | undefined;
  readonly clientSecret: string | undefined;
  /** True to write a first tool with its test. */
  readonly tool: boolean;
  /** A file with `mcpServers` to take over. */
  readonly servers: string | undefined;
  readonly store: 'embedded' | 'redis';
  readonly redisUrl: string | undefined;
}

/** Answers that flags give; the rest is asked for, or has its default. */
export type GivenAnswers = { readonly [Name in keyof InitAnswers]: InitAnswers[Name] | undefined };

/** For `--yes`. */
export const completeAnswers = (given: GivenAnswers): InitAnswers => ({
  ...given,
  provider: given.provider ?? (given.issuer === undefined ? 'dev' : 'other'),
  tool: given.tool ?? given.servers === undefined,
  store: given.store ?? (given.redisUrl === undefined ? 'embedded' : 'redis'),
});

/** `answer` is the member of the answers, `option` what says it on the command line. */
const CHECKED = [
  { answer: 'issuer', option: '--issuer', setting: providerSettings.issuer },
  { answer: 'clientId', option: '--client-id', setting: clientId },
  { answer: 'redisUrl', option: '--redis-url', setting: storeSettings.redisUrl },
] as const satisfies readonly {
  answer: keyof GivenAnswers;
  option: string;
  setting: Setting<string | undefined>;
}[];

export type CheckedAnswer = (typeof CHECKED)[number]['answer'];

/** Says what is wrong with `text`. It is not repeated: an address of Redis may have a password. */
export function findInitProblem(name: CheckedAnswer, text: string): string | undefined {
  const rule = CHECKED.find(({ answer }) => answer === name)?.setting.rule;
  return rule === undefined || rule.parse(text) !== undefined
    ? undefined
    : `It must be ${rule.allowed}.`;
}

/** @throws UsageError */
export function checkGivenAnswers(given: GivenAnswers): void {
  for (const { answer, option } of CHECKED) {
    const text = given[answer];
    const problem = text === undefined ? undefined : findInitProblem(answer, text);
    if (problem !== undefined) throw new UsageError(`${option} is not valid. ${problem}`, 'init');
  }
}
