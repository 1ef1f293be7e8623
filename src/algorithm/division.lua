-- Division with an explicit rounding direction, exact in doubles. The twin of division.h.
--
-- Doubles represent every whole number up to 2^53, and floor(a / b) is right while a + b <= 2^53. A product such as
-- previous * (period - elapsed) goes beyond that, so mul_div() divides it digit by digit.
local floor = math.floor
local function div_floor(a, b)
  return (a - a % b) / b -- floor(a / b), without a call
end
local function div_ceil(a, b) -- a + b <= 2^53
  a = a + b - 1
  return (a - a % b) / b
end
local function mul_div(a, b, c) -- quotient and remainder of a * b / c, for b <= c < 2^51, a < 2^53
  if a * b + c < 9007199254740992 then
    local t = a * b
    local q = floor(t / c)
    return q, t - q * c
  end
  local chunk = 4503599627370496 -- 2^52, less the bits of c: then remainder * chunk + digit * b < 2^53
  local bits = 1
  while bits <= c do
    bits, chunk = bits * 2, chunk / 2
  end
  local unit = 1
  while unit * chunk <= a do
    unit = unit * chunk
  end
  local q, r = 0, 0
  while unit >= 1 do
    local digit = floor(a / unit)
    a = a - digit * unit
    local t = r * chunk + digit * b
    local s = floor(t / c)
    q, r = q * chunk + s, t - s * c
    unit = unit / chunk
  end
  return q, r
end
local function mul_div_floor(a, b, c)
  local q = mul_div(a, b, c)
  return q
end
local function mul_div_ceil(a, b, c)
  local q, r = mul_div(a, b, c)
  if r > 0 then return q + 1 end
  return q
end
