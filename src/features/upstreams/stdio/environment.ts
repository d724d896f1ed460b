// §18.3: what a server finds in its environment.
import type { ProgramUser } from '../../../core/gateway-file/gateway-file.ts';
import { PASSED_ON } from '../../../core/gateway-file/passed-on.ts';

export function createEnvironment(
  ofGateway: Readonly<Record<string, string | undefined>>,
  own: Readonly<Record<string, string>>,
  runAs: ProgramUser | undefined,
): Readonly<Record<string, string>> {
  const passedOn = PASSED_ON.flatMap((name) => {
    const value = (runAs === undefined ? ofGateway : describeUser(ofGateway, runAs))[name];
    return value === undefined ? [] : [[name, value]];
  });
  return { ...Object.fromEntries(passedOn), ...own };
}

/** Without an entry in the system it has no home of its own: then the gateway's is as good as any. */
const describeUser = (
  ofGateway: Readonly<Record<string, string | undefined>>,
  { name, home }: ProgramUser,
): Readonly<Record<string, string | undefined>> => ({
  ...ofGateway,
  HOME: home ?? ofGateway.HOME,
  USER: name,
});
