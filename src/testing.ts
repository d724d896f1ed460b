/**
 * `postern/testing`: a client for the tests of tools, prompts and resources. It calls them through a real gateway, as
 * clients of users do.
 *
 * @packageDocumentation
 */
export {
  CallError,
  type ConnectOptions,
  connect,
  type QuestionHandlers,
  type TestClient,
  type TestUser,
} from './testing/connect.ts';
