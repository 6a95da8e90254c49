// Headers that those of GNU's C++ library include: programs use their names without an #include.
#pragma once
#include <algorithm>
#include <chrono>
#include <iostream>
#include <map>
#include <memory>
#include <numeric>
#include <sstream>
#include <vector>
#include <unistd.h>
