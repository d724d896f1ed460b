// What a client of the stateless era does when it is asked.
import { expect } from 'vitest';
import { askingCall } from '../clients/stateless.ts';
import type { TestGateway, TestResponse } from '../gateway/gateway.ts';

/** The user filled in the form. */
export const ADA = { action: 'accept', content: { name: 'Ada' }, 'x-member': 1 };
export const DECLINED = { action: 'decline' };

export const textOf = ({ json }: TestResponse): string => json.result.content[0].text;
export const saidIn = (response: TestResponse): unknown => JSON.parse(textOf(response));

/** What is asked; an answer that is none fails the test. */
export function questionsIn({ json }: TestResponse): {
  readonly inputRequests: Readonly<Record<string, unknown>>;
  readonly requestState: string;
} {
  expect(json.result).toMatchObject({ resultType: 'input_required' });
  return json.result;
}

/** Calls again, with the same answer to all that was asked. */
export function retry(
  at: Pick<TestGateway, 'rpc'>,
  name: string,
  asked: TestResponse,
  answer: unknown,
  options: Parameters<typeof askingCall>[3] = {},
): Promise<TestResponse> {
  const { inputRequests, requestState } = questionsIn(asked);
  const keys = Object.keys(inputRequests);
  const inputResponses =
    answer === undefined ? {} : Object.fromEntries(keys.map((key) => [key, answer]));
  return askingCall(at, name, { inputResponses, requestState }, options);
}
