// The gateway that a file of tests, or each of its tests, has to itself.
import { useFresh, useShared } from '../lifetimes.ts';
import { startGateway, type TestGateway, type TestOptions } from './gateway.ts';

/** A function where the options depend on what is started before. */
type Options = TestOptions | (() => TestOptions | Promise<TestOptions>);

/** One gateway for all tests of this file or `describe`; use it inside tests and hooks. */
export const useGateway = (options: Options = {}): TestGateway =>
  useShared(async () => startGateway(await resolve(options)));

/** A new gateway for each test. */
export const useFreshGateway = (options: Options = {}): TestGateway =>
  useFresh(async () => startGateway(await resolve(options)));

const resolve = (options: Options) => (typeof options === 'function' ? options() : options);
