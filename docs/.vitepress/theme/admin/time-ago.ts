// §22.5: how long ago something was, or how soon it will be, as one would say it.
import { onMounted, onUnmounted, readonly, ref } from 'vue';

const UPDATE_EVERY_MS = 10_000;
const JUST_NOW_MS = 10_000;

const UNITS: readonly (readonly [unit: Intl.RelativeTimeFormatUnit, ms: number])[] = [
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
  ['second', 1000],
];

const EXACT = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeStyle: 'long' });
const RELATIVE = new Intl.RelativeTimeFormat('en-GB', { style: 'short' });

export const formatExactTime = (time: string): string => EXACT.format(new Date(time));

/** `2 min ago`, `in 3 hr`. */
export function formatRelativeTime(time: string, now: number): string {
  const ms = new Date(time).getTime() - now;
  const [unit, unitMs] = UNITS.find(([, one]) => Math.abs(ms) >= one) ?? ['second', 1000];
  return Math.abs(ms) < JUST_NOW_MS ? 'just now' : RELATIVE.format(Math.trunc(ms / unitMs), unit);
}

const deviceTime = ref(0);
let shownTimes = 0;
let timer: ReturnType<typeof setInterval> | undefined;

/** The time of this device, which goes on while something that shows it is on the page. */
export function useNow() {
  onMounted(() => {
    shownTimes += 1;
    timer ??= setInterval(() => {
      deviceTime.value = Date.now();
    }, UPDATE_EVERY_MS);
  });
  onUnmounted(() => {
    shownTimes -= 1;
    if (shownTimes > 0) return;
    clearInterval(timer);
    timer = undefined;
  });
  deviceTime.value = Date.now();
  return readonly(deviceTime);
}
