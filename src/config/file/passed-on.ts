/** §18.3: of the gateway's environment only what every program needs; the rest are secrets of the gateway. */
export const PASSED_ON: readonly string[] = ['PATH', 'HOME', 'USER', 'LANG', 'TMPDIR'];
