// The authorization request at the provider, whoever made it: what it answers, or that nobody does.
import { type Finding, failure } from '../finding.ts';
import { describeNetworkFailure } from '../network/describe-failure.ts';
import type { Probe } from '../network/probe.ts';
import { askAuthorization } from './ask-authorization.ts';
import { judgeAuthorization } from './judge-authorization.ts';

export interface Unreachable {
  /** The sentence that says what does not answer. */
  readonly what: string;
  readonly setting: string;
  readonly remedy: string;
}

export async function checkAuthorizationRequest(
  url: string,
  probe: Probe,
  { what, setting, remedy }: Unreachable,
): Promise<readonly Finding[]> {
  try {
    return [judgeAuthorization(await askAuthorization(url, probe), url)];
  } catch (error) {
    const { text } = describeNetworkFailure(error, url);
    return [failure('provider.reachable', `${what} ${text}`, { setting, remedy })];
  }
}
