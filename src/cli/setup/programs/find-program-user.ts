// §18.1: the user of the system that programs behind the gateway run as, looked up once for each load of the file.
import { execFile } from 'node:child_process';
import type { FoundProgramUser } from '../../../config/file/parse-options.ts';
import { quote } from '../../../platform/text.ts';

/** Not the PATH of the environment: what is found here tells which rights a program has. */
export const SYSTEM_PATH = '/usr/bin:/bin:/usr/sbin:/sbin:/run/current-system/sw/bin';
/** A directory service may be away. */
const LOOKUP_MS = 10_000;
/** (uid_t) -1 means "leave it as it is" to the system. */
const MAX_ID = 4_294_967_294;

/** Never rejects. */
export async function findProgramUser(text: string): Promise<FoundProgramUser> {
  if (process.platform !== 'linux')
    return refuse('Programs can run as another user on Linux only. Remove it here.');
  const [, uid, gid] = /^(\d+):(\d+)$/.exec(text) ?? [];
  const entry = await lookUp(uid ?? text);
  if ('problem' in entry) return refuse(entry.problem);
  const user =
    uid === undefined
      ? entry.user
      : { uid: Number(uid), gid: Number(gid), name: entry.user?.name, home: entry.user?.home };
  if (user === undefined) return refuse(describeUnknown(text));
  const problem = findIdProblem(user.uid, user.gid);
  return problem === undefined ? { kind: 'found', user } : refuse(`${quote(text)} ${problem}`);
}

const refuse = (message: string): FoundProgramUser => ({ kind: 'problem', message });

/** The group of a user that the system does not know must be said, too. */
const describeUnknown = (text: string): string =>
  /^\d+$/.test(text)
    ? `This system has no user ${quote(text)}, and ${quote(text)} is a number without a group. Write uid:gid, such as ${text}:${text}.`
    : `This system has no user ${quote(text)}. Create it, for example by useradd --system ${/^\d/.test(text) ? 'postern-programs' : text}, or write uid:gid, such as 1001:1001.`;

function findIdProblem(uid: number, gid: number): string | undefined {
  if (uid > MAX_ID || gid > MAX_ID) return `is out of range: the largest number is ${MAX_ID}.`;
  if (uid === 0 || gid === 0)
    return 'is root, or has its group: such a program could read everything. Name a user that has no rights.';
  if (uid === process.geteuid?.())
    return 'is the user of the gateway itself, so the program could read its secrets. Name another one.';
  if (gid === process.getegid?.() || process.getgroups?.().includes(gid))
    return `has a group of the gateway (${gid}), so the program could read what that group may. Name a user of another group.`;
  return undefined;
}

type Entry =
  | { readonly user: { uid: number; gid: number; name: string; home: string } | undefined }
  | { readonly problem: string };

/** Of any source that the system has, as /etc/nsswitch.conf says. */
const lookUp = (key: string): Promise<Entry> =>
  new Promise((resolve) => {
    const options = { env: { PATH: SYSTEM_PATH }, timeout: LOOKUP_MS };
    execFile('getent', ['passwd', key], options, (error, line) => {
      // getent says so where it has no entry.
      if (error?.code === 2) resolve({ user: undefined });
      else if (error !== null)
        resolve({ problem: `The user could not be looked up by getent (${error.message}).` });
      else resolve({ user: readEntry(line) });
    });
  });

function readEntry(line: string) {
  const [name = '', , uid, gid, , home = ''] = line.trim().split(':');
  return { uid: Number(uid), gid: Number(gid), name, home };
}
