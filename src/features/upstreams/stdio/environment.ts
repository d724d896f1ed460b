// §18.3: what a server finds in its environment.
const PASSED_ON = ['PATH', 'HOME', 'USER', 'LANG', 'TMPDIR'];

/** Of the gateway's environment only what every program needs; the rest are secrets of the gateway. */
export function createEnvironment(
  ofGateway: Readonly<Record<string, string | undefined>>,
  own: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> {
  const passedOn = PASSED_ON.flatMap((name) => {
    const value = ofGateway[name];
    return value === undefined ? [] : [[name, value]];
  });
  return { ...Object.fromEntries(passedOn), ...own };
}
